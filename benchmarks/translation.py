"""How long it takes to turn a shipped profile into a command line, for each of the four dialects.

    python -m benchmarks.translation

Counted in processor time, so that other work on the machine matters little: reading and checking the profile
with everything that it extends, reading the list of the dialect, and the translation. Best of several rounds,
as the collector and a first import belong to nobody.
"""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

from agent.server.argv import Places, command_for
from agent.server.caps import DIALECTS, built_in
from agent.server.profile import DialectName
from agent.server.profile_files import list_profiles, load_profile

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "server_profiles"
ROUNDS = 20
LIMIT_MILLISECONDS = 5.0


def main() -> None:
    rows = [
        {"profile": found.name, "dialect": dialect, "milliseconds": round(measure(found.name, dialect), 3)}
        for found in list_profiles([FOLDER])
        for dialect in DIALECTS
    ]
    slowest = max(rows, key=lambda row: row["milliseconds"])
    result = {
        "what": "profile to command line, processor time, best of rounds",
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "rounds": ROUNDS,
        "limit_milliseconds": LIMIT_MILLISECONDS,
        "slowest_milliseconds": slowest["milliseconds"],
        "below_limit": sum(row["milliseconds"] < LIMIT_MILLISECONDS for row in rows),
        "of": len(rows),
        "rows": rows,
    }
    path = ROOT / "benchmarks" / "results" / "translation.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{result['below_limit']} of {len(rows)} below {LIMIT_MILLISECONDS} ms; slowest: {slowest}; {path}")


def measure(name: str, dialect: DialectName) -> float:
    """Milliseconds of processor time for one profile in one dialect."""
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.process_time()
        profile = load_profile(name, [FOLDER])
        command_for(profile, built_in(dialect), Places(target="target.gguf", draft="draft.gguf"))
        best = min(best, time.process_time() - begin)
    return 1000 * best


if __name__ == "__main__":
    main()

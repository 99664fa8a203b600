"""Runs parts of the reliability figures: `python -m benchmarks.reliability commands --count 10000`.

A part is a module beside this one with `measure(count, seed) -> dict`. The results of other parts stay.
"""

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path

PARTS = ("commands",)
RESULTS = Path(__file__).parents[1] / "reliability.json"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"which: {', '.join(PARTS)}")
    parser.add_argument("--count", type=int, default=10_000, help="cases of each part")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args(arguments)
    results = json.loads(chosen.results.read_text("utf-8")) if chosen.results.exists() else {}
    failed = False
    for part in chosen.parts:
        found = import_module(f"benchmarks.reliability.{part}").measure(chosen.count, chosen.seed)
        results[part] = found
        failed = failed or not found["passed"]
        sys.stdout.write(f"{part}: {json.dumps(found)}\n")
        chosen.results.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

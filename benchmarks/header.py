"""How long it takes to read the header of a model with a vocabulary of 262,144 tokens, as Gemma's.

    python -m benchmarks.header

Counted in processor time, so that other work on the machine matters little. The file has 60 layers of small
tensors, and tokens, scores and kinds of tokens as a real one; what is read is what `agent server fit` needs.
"""

import json
import os
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from agent.server.gguf import read_header
from agent.server.model_shape import shape_of
from tests.server import gguf_models

RESULT = Path(__file__).resolve().parent / "results" / "header.json"
TOKENS = 262_144
ROUNDS = 20
LIMIT_MILLISECONDS = 100.0


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = gguf_models.dense(Path(folder) / "model.gguf", layers=60, vocabulary=TOKENS)
        size = path.stat().st_size
        times = sorted(measure(path) for _ in range(ROUNDS))
        tokens = read_header(path).vocabulary_size
    result = {
        "what": "header of a model file, processor time in milliseconds",
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "tokens": tokens,
        "file_bytes": size,
        "rounds": ROUNDS,
        "limit_milliseconds": LIMIT_MILLISECONDS,
        "median_milliseconds": round(statistics.median(times), 1),
        "fastest_milliseconds": round(times[0], 1),
        "slowest_milliseconds": round(times[-1], 1),
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


def measure(path: Path) -> float:
    """Milliseconds of processor time for the header and the shape that follows from it."""
    begin = time.process_time()
    shape_of(read_header(path))
    return 1000 * (time.process_time() - begin)


if __name__ == "__main__":
    main()

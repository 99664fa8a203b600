"""`python -m benchmarks.reliability --part edits`: runs one part and writes its counts.

A part is a module of this package with `run(count, seed)`, which gives the figures as a mapping. They come
under the name of the part into `benchmarks/results/reliability.json`; other parts there stay as they are.
"""

import argparse
import importlib
import json
import pkgutil
import sys
import time
from pathlib import Path
from typing import Any

import benchmarks.reliability

_RESULTS = Path(__file__).parents[1] / "results" / "reliability.json"


def part_names() -> list[str]:
    modules = pkgutil.iter_modules(benchmarks.reliability.__path__)
    return sorted(module.name for module in modules if not module.name.startswith("_"))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reliability", description=__doc__)
    parser.add_argument("--part", required=True, choices=part_names())
    parser.add_argument("--count", type=int, default=10_000, help="how many cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=_RESULTS)
    options = parser.parse_args(arguments)
    part = importlib.import_module(f"benchmarks.reliability.{options.part}")
    began = time.monotonic()
    figures = part.run(options.count, options.seed)
    figures["seconds"] = round(time.monotonic() - began, 1)
    figures["seed"] = options.seed
    figures["date"] = time.strftime("%Y-%m-%d")
    figures["python"] = sys.version.split()[0]
    merge(options.output, options.part, figures)
    print(json.dumps(figures, indent=2))
    return 1 if figures.get("failures") else 0


def merge(path: Path, part: str, figures: dict[str, Any]) -> None:
    """Puts the figures of a part into the file, which it writes in one step."""
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    known[part] = figures
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n", "utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    raise SystemExit(main())

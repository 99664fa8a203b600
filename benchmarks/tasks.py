"""How often the examples succeed with a real model, from the task file alone.

    python benchmarks/tasks.py --runs 10 [--profile embedded] [--only first-fix,rename]

Prints a table and writes results/tasks.json. The check of each task is run once more by this script.
"""

import argparse
import datetime
import os
import statistics
from pathlib import Path

from runs import REPOSITORY, RunResult, run_task, save


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--profile", default="embedded")
    parser.add_argument("--only", default="")
    parser.add_argument("--max-seconds", type=float, default=600.0)
    arguments = parser.parse_args()
    folders = sorted(path.parent for path in (REPOSITORY / "examples").glob("*/task.md"))
    wanted = set(filter(None, arguments.only.split(",")))
    folders = [folder for folder in folders if not wanted or folder.name in wanted]
    results: list[RunResult] = []
    for number in range(arguments.runs):
        for folder in folders:
            result = run_task(folder, "task.md", arguments.profile, arguments.max_seconds)
            results.append(result)
            print(
                f"{number + 1:3} {result.task:14} {'solved' if result.solved else result.reason:16} "
                f"{result.steps:3} steps {result.seconds:6.1f} s",
                flush=True,
            )
            save("tasks", _about(arguments), results)
    print(table(folders, results))


def _about(arguments: argparse.Namespace) -> dict[str, object]:
    return {
        "command": f"python benchmarks/tasks.py --runs {arguments.runs} --profile {arguments.profile}",
        "date": datetime.date.today().isoformat(),
        "cpus": os.cpu_count(),
    }


def table(folders: list[Path], results: list[RunResult]) -> str:
    lines = ["| task | solved | median s | median steps | median acceptance |", "|---|---|---|---|---|"]
    for folder in folders:
        own = [result for result in results if result.task == folder.name]
        solved = sum(result.solved for result in own)
        rates = [result.acceptance_rate for result in own if result.acceptance_rate is not None]
        acceptance = f"{statistics.median(rates):.0%}" if rates else "-"
        lines.append(
            f"| {folder.name} | {solved}/{len(own)} | {statistics.median(r.seconds for r in own):.0f} | "
            f"{statistics.median(r.steps for r in own):.0f} | {acceptance} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()

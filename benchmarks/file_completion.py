"""What `@` costs in a repository of 100,000 files: the first listing against `git ls-files`, then each query.

    python -m benchmarks.file_completion --output benchmarks/results/file_completion.json

The listing is the one that the interface asks for, folders included. It runs in a thread there, so what a
person feels is not this time but `longest_hold_seconds`: the longest that the event loop, which handles the
keys, was held up while it ran. Times are the middle of some rounds, ratios are of one round.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from agent.repo.files import list_files
from agent.ui.completer import MOST_FILES
from agent.ui.entry.completion import with_folders
from agent.ui.entry.fuzzy import best

FILES = 100_000
FILES_IN_FOLDER = 100
ROUNDS = 5
QUERIES = ("a", "mod", "module_77", "p12/m042", "zzz", "pkg0999/module_99.py")
LOOK_SECONDS = 0.002


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--files", type=int, default=FILES)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_repository(root, arguments.files)
        result = measured(root)
    text = json.dumps(result, indent=1)
    print(text)
    if arguments.output:
        arguments.output.write_text(text + "\n", encoding="utf-8")


def make_repository(root: Path, files: int) -> None:
    """Committed, as most files of a repository are."""
    for number in range(files):
        package = root / f"pkg{number // FILES_IN_FOLDER:04}"
        package.mkdir(exist_ok=True)
        (package / f"module_{number % FILES_IN_FOLDER:02}.py").touch()
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "all of it")


def git(root: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True).stdout


def measured(root: Path) -> dict[str, object]:
    names = listed(root)
    rounds = [one_round(root) for _ in range(ROUNDS)]
    queries = {query: round(middle(partial(best, query, names, MOST_FILES)), 4) for query in QUERIES}
    return {
        "what": "listing for @ and its queries",
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "files": sum(not name.endswith("/") for name in names),
        "folders": sum(name.endswith("/") for name in names),
        "listing_seconds": round(statistics.median(one["listing"] for one in rounds), 3),
        "git_ls_files_seconds": round(statistics.median(one["git"] for one in rounds), 3),
        "ratio_to_git_ls_files": round(statistics.median(one["listing"] / one["git"] for one in rounds), 2),
        "longest_hold_seconds": round(max(asyncio.run(longest_hold(root)) for _ in range(ROUNDS)), 4),
        "query_seconds": queries,
        "rounds": [{name: round(seconds, 4) for name, seconds in one.items()} for one in rounds],
    }


def listed(root: Path) -> list[str]:
    return with_folders(list_files(root, FILES))


def one_round(root: Path) -> dict[str, float]:
    """git is asked for the same: what is tracked, and what would be."""
    begin = time.perf_counter()
    git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    by_git = time.perf_counter() - begin
    begin = time.perf_counter()
    listed(root)
    return {"git": by_git, "listing": time.perf_counter() - begin}


def middle(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


async def longest_hold(root: Path) -> float:
    """The longest that the loop was late, in seconds, while a thread lists the files."""
    work = asyncio.create_task(asyncio.to_thread(listed, root))
    longest = 0.0
    while not work.done():
        begin = time.perf_counter()
        await asyncio.sleep(LOOK_SECONDS)
        longest = max(longest, time.perf_counter() - begin - LOOK_SECONDS)
    await work
    return longest


if __name__ == "__main__":
    main()

"""`python -m benchmarks.checkpoints`: what keeping and putting back files costs.

- A turn that changes 20 files: keeping them first, against copying them with `shutil.copy2` to the same disk.
- `agent undo` of such a turn in a repository of 100,000 files, against `git status` there.
- What a shell command costs more, as the workspace is noted before it and looked at after it.

All are medians of rounds that alternate, and the one that goes first changes from round to round. The first
has twenty times as many, as each takes about a millisecond. Results: `benchmarks/results/checkpoints.json`.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.app.files.commanded import CommandWatch
from agent.session.ledger import SessionLedger
from agent.session.store import SessionStore

_RESULTS = Path(__file__).parent / "results" / "checkpoints.json"
_FILES_OF_A_TURN = 20
_BYTES_OF_A_FILE = 12_000


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoints", description=__doc__)
    parser.add_argument("--files", type=int, default=100_000, help="of the large repository")
    parser.add_argument("--repository", type=Path, help="made here if it is not there yet, and used again")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", type=Path, help="work here (default: the folder for temporary files)")
    parser.add_argument("--output", type=Path, default=_RESULTS)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="agent-checkpoints-", dir=options.folder) as folder:
        place = Path(folder).resolve()
        repository = (options.repository or place / "repository").resolve()
        figures = measured(place, repository, options.files, options.rounds)
    figures |= {"files": options.files, "rounds": options.rounds, "python": sys.version.split()[0]}
    figures["date"] = time.strftime("%Y-%m-%d")
    options.output.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n", "utf-8")
    print(json.dumps(figures, indent=2, sort_keys=True))
    return 0


def measured(folder: Path, repository: Path, files: int, rounds: int) -> dict[str, Any]:
    state = folder / "state"
    if repository.exists():
        git(repository, "reset", "-q", "--hard")
        git(repository, "clean", "-qfd")
    else:
        make_repository(repository, files)
    turn = sorted((repository / "part000").iterdir())[:_FILES_OF_A_TURN]
    return {
        **checkpoint_figures(folder, repository, turn, rounds),
        **undo_figures(repository, state, turn, rounds),
        **command_figures(repository, state, rounds),
    }


def make_repository(folder: Path, files: int) -> None:
    text = b"x = 1  # a line of some length\n" * (_BYTES_OF_A_FILE // 31)
    for number in range(files):
        path = folder / f"part{number // 1000:03}" / f"{number % 1000:03}.txt"
        if number % 1000 == 0:
            path.parent.mkdir(parents=True)
        path.write_bytes(b"%d\n" % number + (text if number < _FILES_OF_A_TURN else b""))
    for command in ("init -q", "add -A", "commit -qm one"):
        git(folder, *command.split())


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0")
    subprocess.run(("git", *who, *arguments), cwd=folder, check=True, capture_output=True)


def checkpoint_figures(folder: Path, repository: Path, turn: list[Path], rounds: int) -> dict[str, Any]:
    copying: list[float] = []
    keeping: list[float] = []
    target = folder / "round"
    both = (
        lambda: copying.append(copied(turn, target)),
        lambda: keeping.append(kept(turn, repository, target)),
    )
    for number in range(rounds * 20):
        for one in both if number % 2 else reversed(both):
            target.mkdir()
            one()
            shutil.rmtree(target)
    of_copying, of_keeping = statistics.median(copying), statistics.median(keeping)
    return {
        "copying_20_files_ms": round(of_copying * 1000, 2),
        "checkpoint_of_20_files_ms": round(of_keeping * 1000, 2),
        "checkpoint_to_copying": round(of_keeping / of_copying, 2),
    }


def copied(turn: list[Path], target: Path) -> float:
    return seconds(lambda: copy_all(turn, target))


def kept(turn: list[Path], repository: Path, session: Path) -> float:
    ledger = SessionLedger(repository, session)
    taken = seconds(lambda: keep_all(turn, ledger))
    ledger.close()
    return taken


def copy_all(files: list[Path], target: Path) -> None:
    for number, path in enumerate(files):
        shutil.copy2(path, target / str(number))


def keep_all(files: list[Path], ledger: SessionLedger) -> None:
    ledger.begin_turn(1)
    for path in files:
        ledger.before_change(path)


def undo_figures(repository: Path, state: Path, turn: list[Path], rounds: int) -> dict[str, Any]:
    environment = {**os.environ, "AGENT_STATE_HOME": str(state)}
    undo_command = (sys.executable, "-m", "agent", "undo", "-C", str(repository))
    status: list[float] = []
    undoing: list[float] = []
    both = (
        lambda: status.append(seconds(lambda: git(repository, "status", "--porcelain"))),
        lambda: undoing.append(seconds(lambda: run(undo_command, environment))),
    )
    for number in range(rounds):
        with SessionStore.create(state, repository) as store:
            ledger = SessionLedger(repository, store.folder)
            for path in turn:
                ledger.before_change(path)
                path.write_bytes(b"changed\n")
                ledger.record(path)
            ledger.close()
        for one in both if number % 2 else reversed(both):
            one()
    of_status, of_undo = statistics.median(status), statistics.median(undoing)
    return {
        "git_status_s": round(of_status, 3),
        "undo_s": round(of_undo, 3),
        "undo_more_than_status_s": round(of_undo - of_status, 3),
    }


def run(command: tuple[str, ...], environment: dict[str, str]) -> None:
    checkout = Path(__file__).parents[1]
    subprocess.run(command, env=environment, cwd=checkout, check=True, capture_output=True)


def command_figures(repository: Path, state: Path, rounds: int) -> dict[str, Any]:
    before: list[float] = []
    after: list[float] = []
    with SessionStore.create(state, repository) as store:
        ledger = SessionLedger(repository, store.folder)
        watch = CommandWatch(ledger, store.folder)
        for number in range(rounds):
            before.append(seconds(watch.begin))
            (repository / f"made{number}.txt").write_bytes(b"made\n")
            after.append(seconds(watch.end))
        ledger.close()
    return {
        "before_a_command_s": round(statistics.median(before), 3),
        "after_a_command_s": round(statistics.median(after), 3),
    }


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    raise SystemExit(main())

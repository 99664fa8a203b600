"""`kill -9` at every event of a scripted run in a repository with a person's uncommitted work.

The run edits files of theirs, makes files, and runs commands that overwrite and delete what is tracked,
dirty, staged, untracked and ignored. After each kill
- every byte of theirs has to be where it was, in git, or kept in the session,
- git's index and HEAD are as they were,
- `agent undo` puts back every file, or refuses and leaves all as it is,
- the session goes on: `agent run --continue` comes to its end.
"""

import contextlib
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Place, ended
from tests.fakes.script import Step, StepLike, call
from tests.fakes.scripted_server import ScriptedServer
from tests.fakes.state import ServerSettings

_COMMAND = (
    "echo x > clean.txt; echo x >> staged.txt; rm untracked.txt; mv src moved; mkdir -p made; "
    "echo y > made/y.txt; echo z > local.db; rm -r data; sleep 0.2; cat clean.txt"
)
SCRIPT: tuple[StepLike, ...] = (
    Step(text="I look.", tool_calls=call("read", path="dirty.txt").tool_calls),
    call("edit", path="dirty.txt", old="mine", new="yours"),
    call("write", path="new/file.txt", content="new\n"),
    call("shell", command=_COMMAND),
    call("read", path="second.txt"),
    call("write", path="second.txt", content="other\n"),
    call("finish", answer="Done."),
)


def prepare(place: Place) -> dict[str, bytes]:
    """A repository with work of all kinds; what the person has in it, by name."""
    place.write("clean.txt", "committed\n")
    place.write("src/a.py", b"a = 1\r\n")
    place.write("staged.txt", "one\n")
    place.write("second.txt", "second\n")
    place.write("dirty.txt", "one\n")
    _git(place, "init", "-q")
    _git(place, "add", "-A")
    _git(place, "commit", "-qm", "one")
    place.write("staged.txt", "two\n")
    _git(place, "add", "staged.txt")
    place.write("staged.txt", "three\n")
    place.write("dirty.txt", b"this is mine\0\xff not yours")
    place.write("dirty.txt", "this is mine\n")
    place.write("untracked.txt", b"\xff\xfeuntracked")
    place.write("local.db", b"only here\0\n")
    place.write("data/deep/notes.txt", "in a folder that git ignores\n")
    place.write(".git/info/exclude", "local.db\ndata/\n")
    return files_of(place.workspace)


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }


def _git(place: Place, *arguments: str) -> bytes:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(
        ("git", *who, *arguments), cwd=place.workspace, check=True, capture_output=True
    ).stdout


def killed_at(place: Place, url: str, event: int) -> int:
    """Kills the run when it has printed so many events. How many it printed, if it ended before."""
    place.use(url)
    arguments = ("run", "-p", "Work", "--output", "jsonl", "--allow", "shell")
    process = place.start(*arguments, stderr=subprocess.DEVNULL)
    if process.stdout is None:
        raise RuntimeError("it was started with a pipe")
    seen = 0
    with process.stdout:
        while seen < event and process.stdout.readline():
            seen += 1
        process.kill()
    process.wait()
    return seen


def lost_bytes(place: Place, person: dict[str, bytes]) -> int:
    """Bytes of the person's files that are nowhere any more."""
    kept = {path.name for path in place.state.rglob("*") if len(path.name) == 64}
    there = files_of(place.workspace)
    committed = set(_git(place, "rev-list", "--objects", "--all").decode().split())
    lost = 0
    for name, data in person.items():
        moved = data in there.values()
        digest = hashlib.sha256(data).hexdigest()
        blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        if there.get(name) != data and not moved and digest not in kept and blob not in committed:
            lost += len(data)
    return lost


def fault(folder: Path, event: int) -> tuple[int, int, str]:
    """One kill: how many events there were, bytes lost, and what is wrong (empty: nothing)."""
    place = Place(folder)
    person = prepare(place)
    index = (place.workspace / ".git" / "index").read_bytes()
    with _server(*SCRIPT) as url:
        seen = killed_at(place, url, event)
    _wait_for_the_command(place)
    lost = lost_bytes(place, person)
    if lost:
        return seen, lost, f"{lost} bytes of the person's work are lost"
    if (place.workspace / ".git" / "index").read_bytes() != index:
        return seen, 0, "the index changed"
    problem = _undone(place, person)
    if problem:
        return seen, 0, problem
    return seen, 0, _goes_on(place)


def _wait_for_the_command(place: Place) -> None:
    """What the killed run had started may still be writing; it ends by itself."""
    before = None
    while before != (now := files_of(place.workspace)):
        before = now
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(("sleep", "0.4"), timeout=5, check=True)


def _undone(place: Place, person: dict[str, bytes]) -> str:
    there = files_of(place.workspace)
    done = place.run("undo")
    after = files_of(place.workspace)
    if done.code == 0:
        return "" if after == person else f"undo left {sorted(set(after.items()) ^ set(person.items()))}"
    if after != there:
        return "undo refused, and changed files"
    return "" if "undone" in done.err or "nothing to undo" in done.err else f"undo said {done.err}"


def _goes_on(place: Place) -> str:
    if not any(place.state.glob("sessions/*/*/events.jsonl")):
        return ""  # it was killed before there was one
    with _server("I go on.") as url:
        place.use(url)
        done = ended(place.start("run", "--continue", "-p", "Go on", "--output", "json"))
    if done.code == 0 or "no earlier session" in done.err:
        return ""
    return f"the session did not go on: {done.err}{done.out}"


@contextlib.contextmanager
def _server(*steps: StepLike) -> Any:
    server = ScriptedServer(steps, ServerSettings())
    try:
        yield server.url
    finally:
        server.close()


def run(count: int, seed: int, step: int = 1, first: int = 1) -> dict[str, Any]:
    """Kills at each event from the `first` on, at most `count`, and every `step`th.

    `bytes_lost` and `failures` have to be 0. `events` is how many the run has, 0 where it was not killed up
    to its end.
    """
    failures: list[str] = []
    kills = lost = events = 0
    event = first + seed % step
    while kills < count:
        with tempfile.TemporaryDirectory(prefix="agent-kills-") as folder:
            seen, gone, problem = fault(Path(os.path.realpath(folder)), event)
        kills += 1
        lost += gone
        if problem:
            failures.append(f"killed at event {event}: {problem}")
        if seen < event:
            events = seen
            break
        event += step
    return {
        "kills": kills,
        "events": events,
        "bytes_lost": lost,
        "failures": len(failures),
        "first_failures": failures[:10],
    }

"""Everything that people have written, on a disk with no room left and in folders that may only be read.

It is there as it was or as it should become, nothing half-written lies beside it, and one line says why.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.ui.entry.draft import Draft, DraftFile
from agent.ui.entry.history import InputHistory
from tests.conftest import StartServer
from tests.e2e.conftest import AGENT, Done, Place
from tests.e2e.disks import FULL, SMALL_FILES, afterwards, frozen, full, thawed
from tests.fakes.script import call

pytestmark = pytest.mark.timeout(300)

FINISH = call("finish", answer="Done.")
LONG = "".join(f"line {number}\n" for number in range(2_000))
Spoil = Callable[[Place, Path], tuple[str, ...]]


def complaint_of(done: Done) -> str:
    """The one line that says what is wrong."""
    assert done.code not in (0, 130), done.out
    told = [line for line in done.err.splitlines() if not line.startswith(("hint: ", "warning: "))]
    assert len(told) == 1, done.err
    assert told[0].startswith("agent: ")
    return told[0]


def says_full(done: Done) -> bool:
    return any(words in complaint_of(done).lower() for words in FULL)


def says_closed(done: Done) -> bool:
    return any(words in complaint_of(done) for words in ("Read-only file system", "Permission denied"))


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in files}


@pytest.fixture
def worked(place: Place, scripted_server: StartServer) -> Place:
    """After a run that changed a long file and made another."""
    place.write("long.txt", LONG)
    server = scripted_server(
        call("read", path="long.txt"),
        call("edit", path="long.txt", old="line 7\n", new="line seven\n"),
        call("write", path="made.txt", content=LONG),
        FINISH,
    )
    place.use(server.url)
    assert place.run("run", "-p", "Work").code == 0
    assert "line seven" in (place.workspace / "long.txt").read_text("utf-8")
    return place


@pytest.mark.parametrize(("spoil", "form"), [(full, "html"), (frozen, "md")])
def test_an_export_that_does_not_fit_is_not_there_at_all(worked: Place, spoil: Spoil, form: str):
    target = worked.folder / "exports"
    target.mkdir()
    (target / f"old.{form}").write_text("an earlier one", "utf-8")
    session = next(worked.state.glob("sessions/*/*")).name
    words = ("session", "export", session, "--force", "--output", str(target / f"old.{form}"))
    done = worked.run(*words, program=spoil(worked, target))
    assert says_full(done) or says_closed(done)
    left = thawed(afterwards(target))
    assert contents(left) == {f"old.{form}": "an earlier one"}


@pytest.mark.parametrize(
    "words", ["session export --format json", "session show", "session list", "config show"]
)
def test_output_to_a_full_device_is_no_success(worked: Place, words: str):
    program = ("sh", "-c", 'exec "$@" > /dev/full', "sh", *AGENT)
    done = worked.run(*words.split(), program=program)
    assert "the disk is full" in complaint_of(done)
    assert done.code == 1


@pytest.mark.parametrize("spoil", [full, frozen])
@pytest.mark.parametrize("what", ["workspace", "state"])
def test_an_undo_that_cannot_be_done_changes_nothing_and_can_be_done_later(
    worked: Place, spoil: Spoil, what: str
):
    folder = worked.workspace if what == "workspace" else worked.state
    before = contents(worked.workspace)
    done = worked.run("undo", program=spoil(worked, folder))
    assert says_full(done) or says_closed(done)
    thawed(folder)
    assert contents(afterwards(worked.workspace)) == before
    if afterwards(folder) != folder:
        thawed(afterwards(folder)).rename(folder.with_name("later"))
        folder.rename(folder.with_name("before"))
        folder.with_name("later").rename(folder)
    assert worked.run("undo").code == 0
    assert contents(worked.workspace) == {"long.txt": LONG}


def test_a_list_of_sessions_needs_no_room(worked: Place):
    done = worked.run("session", "list", program=full(worked, worked.state))
    assert (done.code, len(done.out.splitlines())) == (0, 1)


@pytest.mark.parametrize(
    ("words", "spoil"),
    [
        (("config", "set", "limits.max_steps", "60"), full),
        (("config", "set", "limits.max_steps", "60"), frozen),
        (("config", "unset", "limits.max_steps"), full),
        (("profile", "new", "mine", "--from", "embedded"), full),
        (("mcp", "add", "tool", "--", "true"), full),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else value.__name__,
)
def test_settings_are_as_they_were(place: Place, spoil: Spoil, words: tuple[str, ...]):
    place.config.mkdir()
    (place.config / "config.toml").write_text("[limits]\nmax_steps = 7\n" + "# a remark\n" * 800, "utf-8")
    before = contents(place.config)
    done = place.run(*words, program=spoil(place, place.config))
    left = thawed(afterwards(place.config))
    assert done.code != 0
    assert contents(left) == before
    assert says_full(done) or says_closed(done)


@pytest.mark.parametrize("spoil", [full, frozen])
def test_a_batch_that_cannot_be_written_down_does_not_begin(
    place: Place, scripted_server: StartServer, spoil: Spoil
):
    server = scripted_server(FINISH)
    place.use(server.url)
    for role in ("AUTHOR", "COMMITTER"):
        place.variables |= {f"GIT_{role}_NAME": "A", f"GIT_{role}_EMAIL": "a@example.org"}
    for words in ("init -q", "commit -q --allow-empty -m one"):
        place.run(*words.split(), program=("git",))
    for name in ("one.md", "two.md"):
        place.write(name, f"Do {name}\n{LONG}")
    place.state.mkdir()
    done = place.run("run", "one.md", "two.md", program=spoil(place, place.state))
    thawed(place.state)
    assert says_full(done) or says_closed(done)
    assert server.chats == []


def test_a_model_that_does_not_fit_is_said_before_and_nothing_is_left(place: Place):
    """What is there of an earlier attempt stays, to go on with."""
    models = place.folder / "data" / "models"
    models.mkdir(parents=True)
    source = 'sources = [{ kind = "hub", repo = "maker/model" }]\n'
    digest = "0" * 64
    place.profile("mine", f'[target]\nfile = "a.gguf"\nsha256 = "{digest}"\nbytes = {10**15}\n{source}')
    (models / "a.gguf.part").write_bytes(b"x" * 40)
    done = place.run("model", "pull", "mine", program=full(place, models))
    assert "full" in complaint_of(done) or "free" in complaint_of(done)
    assert (afterwards(models) / "a.gguf.part").read_bytes() == b"x" * 40


@pytest.mark.parametrize("limit", [0, 1])
def test_what_stands_behind_the_input_field_is_kept_as_it_was(tmp_path: Path, place: Place, limit: int):
    """History and drafts, where no file may grow; neither stops the program."""
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from agent.ui.entry.draft import Draft, DraftFile\nfrom agent.ui.entry.history import InputHistory\n"
        "folder = Path(sys.argv[1])\nhistory = InputHistory(folder / 'history.jsonl')\n"
        "history.add('x' * 9000)\nDraftFile(folder, 1).save(Draft('y' * 9000, {}))\n"
        "print('went on')\n"
    )
    folder = tmp_path / "ui"
    folder.mkdir()
    InputHistory(folder / "history.jsonl").add("before")
    DraftFile(folder, 1).save(Draft("half", {}))
    small = SMALL_FILES[2].replace("-f 4", f"-f {limit}")
    done = place.run(str(folder), program=(*SMALL_FILES[:2], small, "bash", AGENT[0], "-c", script))
    assert (done.code, done.out) == (0, "went on\n"), done.err
    history = InputHistory(folder / "history.jsonl")
    history.add("after")
    again = InputHistory(folder / "history.jsonl")
    again.load()
    assert again.entries == ["before", "after"]
    assert DraftFile(folder, 1).take_abandoned() == Draft("half", {})
    assert [path.name for path in folder.iterdir()] == ["history.jsonl"]

"""The warm start as a whole, against a server of which only the slots are there."""

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agent.app.servers.early import EarlyReading, begin_early, note_file, read_note, states_folder
from agent.app.servers.fitting import fit_to_machine
from agent.app.servers.kept_states import delete_all_states, delete_states_of_removed_sessions, state_lines
from agent.app.servers.serving import Serving
from agent.app.servers.warm import Head, Warmth, head_of
from agent.config.load import load_settings
from agent.core.messages import AssistantMessage, Message, SystemMessage, UserMessage
from agent.llm.protocol import ConstrainedProtocol
from agent.resources import runtime_folder
from agent.server.model_file import ModelFile
from agent.server.profile import Profile, Speculation
from agent.server.record import Endpoint, Record
from agent.server.slot_states import states_in
from tests.fakes.slot_record import record_for
from tests.fakes.slot_server import SlotServer, SlotWorld

FINGERPRINT = "f" * 32
PROFILE = Profile(name="mine", engine="embedded", target=ModelFile(file="tiny.gguf"))
SYSTEM = "You help with code. " * 8
MESSAGES: list[Message] = [SystemMessage(SYSTEM), UserMessage("Hello"), AssistantMessage("Good day.")]


@dataclass
class Rig:
    """A server of ours with one slot, as this process found it."""

    server: SlotServer
    record: Record
    note: Path
    session: Path

    @property
    def world(self) -> SlotWorld:
        return self.server.world

    @property
    def folder(self) -> Path:
        return states_folder() / FINGERPRINT

    def warmth(self, profile: Profile = PROFILE, **settings: int) -> Warmth:
        loaded = load_settings(None, os.environ, {})
        server = loaded.settings.server.model_copy(update=settings)
        loaded = replace(loaded, settings=loaded.settings.model_copy(update={"server": server}))
        return Warmth(Serving(profile, loaded, FINGERPRINT), self.record.endpoint())

    def restart(self) -> None:
        """The same server in another process, with empty slots."""
        self.world.prompts[:], self.world.tasks[:] = [""], [-1]
        life = f"{self.record.identity}again"
        self.record = record_for(self.server.port, runtime_folder(), FINGERPRINT, life)

    def occupy(self, text: str) -> None:
        self.world.prompts[0], self.world.tasks[0] = text, self.world.tasks[0] + 1

    def acts(self, action: str) -> int:
        return sum(path.endswith(f"action={action}") for path, _ in self.world.requests)


@pytest.fixture
def rig(homes: Path, work: Path) -> Iterator[Rig]:
    server = SlotServer(states_folder() / FINGERPRINT)
    record = record_for(server.port, runtime_folder(), FINGERPRINT)
    session = homes / "session-1"
    session.mkdir()
    yield Rig(server, record, note_file(work, None, os.environ), session)
    server.close()


def head(beginning: str = "Files of the repository: a.py") -> Head:
    return head_of(ConstrainedProtocol([]), SYSTEM, beginning)


async def test_the_first_run_reads_the_head_and_keeps_it(rig: Rig):
    await rig.warmth().read_head(head(), note=rig.note)
    assert rig.world.prompts[0].endswith("Files of the repository: a.py")
    [state] = states_in(rig.folder)
    assert (state.kind, state.tokens) == ("head", len(rig.world.prompts[0]))


async def test_after_a_restart_the_head_is_read_back_instead(rig: Rig):
    await rig.warmth().read_head(head(), note=rig.note)
    prompt = rig.world.prompts[0]
    rig.restart()
    await rig.warmth().read_head(head(), note=rig.note)
    assert rig.world.prompts[0] == prompt
    assert len(rig.world.asked("/completion")) == 1


async def test_a_server_that_has_read_the_head_is_left_to_its_own_cache(rig: Rig):
    await rig.warmth().read_head(head(), note=rig.note)
    rig.occupy(f"{rig.world.prompts[0]} and a task")
    before = rig.world.prompts[0]
    await rig.warmth().read_head(head(), note=rig.note)
    assert rig.world.prompts[0] == before


async def test_how_fast_a_head_was_read_is_kept_for_the_next_start_of_its_server(rig: Rig):
    fitting = PROFILE.model_copy(update={"batch": 64, "batch_seconds": 1.0})
    await rig.warmth(fitting).read_head(head("Files of the repository: a.py " * 5), note=rig.note)
    threads = rig.warmth(fitting)._serving.loaded.settings.server.threads
    assert fit_to_machine(fitting, threads).profile.batch == round(1 / rig.world.seconds_per_token)


async def test_a_busy_server_is_asked_for_nothing(rig: Rig):
    rig.world.busy.add(0)
    await rig.warmth().read_head(head(), note=rig.note)
    await rig.warmth().keep_session(rig.session, MESSAGES, tokens=10, rate=1.0)
    assert {path for path, _ in rig.world.requests} == {"/slots"}


async def test_a_server_of_somebody_else_is_asked_for_nothing(rig: Rig):
    loaded = load_settings(None, os.environ, {})
    elsewhere = Endpoint(
        base_url=f"http://127.0.0.1:{rig.server.port}", api_key="", profile="remote", context_tokens=4096
    )
    warmth = Warmth(
        Serving(Profile(name="remote", engine="remote", url="http://127.0.0.1:1"), loaded, FINGERPRINT),
        elsewhere,
    )
    await warmth.read_head(head(), note=rig.note)
    await warmth.keep_session(rig.session, MESSAGES, tokens=10, rate=1.0)
    assert not await warmth.bring_back(MESSAGES)
    assert rig.world.requests == []


async def test_a_head_that_was_read_quickly_is_not_kept(rig: Rig):
    rig.world.seconds_per_token = 0.0001
    await rig.warmth().read_head(head(), note=rig.note)
    assert list(rig.folder.glob("*")) == []


async def test_nothing_is_kept_when_the_limit_is_none(rig: Rig):
    await rig.warmth(state_mib=0).read_head(head(), note=rig.note)
    assert rig.acts("save") == 0


@pytest.mark.parametrize("kind", ["dflash", "mtp", "eagle3", "dspark"])
async def test_no_state_is_kept_for_drafters_that_follow_the_target(rig: Rig, kind: str):
    profile = PROFILE.model_copy(update={"speculation": Speculation.model_construct(kind=kind, also=())})
    await rig.warmth(profile).read_head(head(), note=rig.note)
    assert len(rig.world.asked("/completion")) == 1
    assert rig.acts("save") == 0


async def held(rig: Rig, messages: Sequence[Message] = MESSAGES) -> None:
    """The server holds a conversation, which is kept."""
    rig.occupy("x" * 500)
    await rig.warmth().keep_session(rig.session, messages, tokens=500, rate=50.0)


async def test_a_conversation_is_kept_and_brought_back_after_a_restart(rig: Rig):
    await held(rig)
    rig.restart()
    assert await rig.warmth().bring_back(MESSAGES)
    assert rig.world.prompts[0] == "x" * 500


async def test_a_conversation_that_is_still_in_its_slot_is_not_read_back(rig: Rig):
    await held(rig)
    assert not await rig.warmth().bring_back(MESSAGES)
    assert rig.acts("restore") == 0


async def test_another_conversation_does_not_get_the_state(rig: Rig):
    await held(rig)
    rig.restart()
    assert not await rig.warmth().bring_back([*MESSAGES, UserMessage("And then?")])
    assert rig.acts("restore") == 0


async def test_what_a_slot_holds_is_pushed_into_the_servers_memory_first(rig: Rig):
    await held(rig)
    rig.restart()
    rig.occupy("another conversation " * 20)
    assert await rig.warmth().bring_back(MESSAGES)
    assert [body["prompt"] for body in rig.world.asked("/completion")] == ["\n"]
    assert rig.world.prompts[0] == "x" * 500


async def test_a_slot_that_holds_another_conversation_is_not_kept(rig: Rig):
    rig.occupy("y" * 300)
    await rig.warmth().keep_session(rig.session, MESSAGES, tokens=500, rate=50.0)
    assert rig.acts("save") == 0


async def test_a_conversation_that_is_evaluated_quickly_is_not_kept(rig: Rig):
    rig.occupy("x" * 500)
    await rig.warmth().keep_session(rig.session, MESSAGES, tokens=500, rate=5000.0)
    assert states_in(rig.folder) == []


async def test_the_folder_stays_below_its_limit(rig: Rig):
    for number in range(3):
        rig.occupy("x" * 600_000)
        session = rig.session.with_name(f"session-{number}")
        session.mkdir(exist_ok=True)
        messages = [*MESSAGES, UserMessage(str(number))]
        await rig.warmth(state_mib=1).keep_session(session, messages, tokens=600_000, rate=50.0)
    assert [state.name for state in states_in(rig.folder)] == ["session-2"]


def early(rig: Rig) -> EarlyReading:
    reading = EarlyReading(rig.note)
    reading.start()
    return reading


async def test_a_run_is_read_for_before_it_is_loaded(rig: Rig):
    await rig.warmth().read_head(head(), note=rig.note)
    rig.occupy("something else")
    begun = early(rig)
    await rig.warmth().read_head(head(), begun, rig.note)
    prompts = [body["prompt"] for body in rig.world.asked("/completion")]
    assert prompts == [prompts[0]] * 2
    assert rig.world.prompts[0] == prompts[0]


async def test_the_head_is_brought_back_early_after_a_restart(rig: Rig):
    await rig.warmth().read_head(head(), note=rig.note)
    rig.restart()
    await rig.warmth().read_head(head(), early(rig), rig.note)
    assert rig.acts("restore") == 1
    assert len(rig.world.asked("/completion")) == 1


async def test_nothing_is_read_early_where_the_slot_is_as_it_was_left(rig: Rig):
    warmth = rig.warmth()
    await warmth.read_head(head(), note=rig.note)
    rig.occupy(f"{rig.world.prompts[0]} and a task")
    await warmth.leave_note(rig.note)
    before = rig.world.prompts[0]
    await rig.warmth().read_head(head(), early(rig), rig.note)
    assert rig.world.prompts[0] == before


async def test_reading_early_for_another_head_is_broken_off(rig: Rig):
    await rig.warmth().read_head(head(), note=rig.note)
    rig.occupy("something else")
    rig.world.gate = threading.Event()
    begun = early(rig)
    rig.world.wait_for("/completion")
    rig.world.gate.set()
    await rig.warmth().read_head(head("Files of the repository: a.py, b.py"), begun, rig.note)
    assert rig.world.prompts[0].endswith("b.py")
    note = read_note(rig.note)
    assert note is not None
    assert note.prompt.endswith("b.py")


def test_a_busy_server_is_not_read_for_early(rig: Rig):
    rig.world.busy.add(0)
    begun = early(rig)
    assert not begun.wait("", "").is_there
    assert rig.world.asked("/completion") == []


def test_nothing_begins_early_in_a_folder_without_a_note(homes: Path, work: Path):
    assert begin_early(work, None) is None
    assert begin_early(work / "missing", None) is None


@pytest.mark.parametrize("text", ["", "[]", '{"prompt": 1}', "\x00"])
def test_a_note_that_is_none_is_ignored(tmp_path: Path, text: str):
    path = tmp_path / "note.json"
    path.write_text(text, "utf-8")
    begun = EarlyReading(path)
    begun.start()
    assert not begun.wait("digest", "life").is_there


def test_other_settings_have_other_notes(homes: Path, work: Path):
    notes = {
        note_file(work, None, {**os.environ, "AGENT_PROFILE": "one"}),
        note_file(work, None, {**os.environ, "AGENT_PROFILE": "two"}),
        note_file(work, "one", os.environ),
    }
    assert len(notes) == 3


async def test_notes_are_for_their_owner_only(rig: Rig):
    await rig.warmth().read_head(head(), note=rig.note)
    assert rig.note.stat().st_mode & 0o777 == 0o600


async def test_states_are_listed_and_deleted(rig: Rig):
    assert state_lines() == []
    await rig.warmth().read_head(head(), note=rig.note)
    await held(rig)
    [line] = state_lines()
    assert "2 states" in line
    assert delete_all_states() == 2
    assert list(rig.folder.iterdir()) == []
    assert not rig.note.exists()


async def test_the_state_of_a_removed_session_goes_with_it(rig: Rig):
    await held(rig)
    rig.session.rmdir()
    delete_states_of_removed_sessions()
    assert list(rig.folder.iterdir()) == []

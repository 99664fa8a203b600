"""States of slots as files: what is kept, what is read back, and what is deleted instead."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.server import slot_states
from agent.server.record import Record
from agent.server.slot_states import StoredState, facts_of, life_of
from tests.fakes.slot_record import record_for
from tests.fakes.slot_server import SlotServer, SlotWorld

PROMPT = "You are an assistant. " * 10


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "slots" / ("f" * 32)


@pytest.fixture
def server(folder: Path) -> Iterator[SlotServer]:
    server = SlotServer(folder)
    yield server
    server.close()


@pytest.fixture
def world(server: SlotServer) -> SlotWorld:
    server.world.prompts[0], server.world.tasks[0] = PROMPT, 1
    return server.world


@pytest.fixture
def record(server: SlotServer, tmp_path: Path) -> Record:
    return record_for(server.port, tmp_path / "run")


def draft(record: Record, name: str = "head-1", tokens: int = len(PROMPT), session: str = "") -> StoredState:
    facts = facts_of(record)
    assert facts is not None
    return StoredState(
        name=name,
        kind="session" if session else "head",
        tokens=tokens,
        size=0,
        build=facts.build,
        template=facts.template,
        context=facts.context,
        life=life_of(record),
        seconds=10.0,
        digest=f"digest of {name}",
        session=session,
    )


def saved(record: Record, folder: Path, name: str = "head-1", session: str = "") -> StoredState:
    stored = slot_states.save(record, folder, 0, draft(record, name, session=session))
    assert stored is not None
    return stored


def test_a_saved_state_is_found_and_read_back(record: Record, folder: Path, world: SlotWorld):
    stored = saved(record, folder)
    world.prompts[0] = "something else"
    assert slot_states.find_state(folder, "digest of head-1") == stored
    assert slot_states.restore(record, folder, stored, 0)
    assert world.prompts[0] == PROMPT


def test_files_are_for_their_owner_only(record: Record, folder: Path, world: SlotWorld):
    saved(record, folder)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert (modes, stat.S_IMODE(folder.stat().st_mode)) == ({0o600}, 0o700)


def test_a_slot_that_holds_something_else_is_not_kept(record: Record, folder: Path, world: SlotWorld):
    assert slot_states.save(record, folder, 0, draft(record, tokens=len(PROMPT) + 100)) is None
    assert list(folder.iterdir()) == []


def test_a_file_that_was_not_written_whole_is_not_kept(record: Record, folder: Path, world: SlotWorld):
    world.writes_less = True
    assert slot_states.save(record, folder, 0, draft(record)) is None
    assert list(folder.iterdir()) == []


def test_a_server_without_the_endpoint_keeps_nothing(record: Record, folder: Path, world: SlotWorld):
    world.refuses.add("save")
    assert slot_states.save(record, folder, 0, draft(record)) is None
    assert list(folder.iterdir()) == []


def test_a_state_that_was_cut_short_never_reaches_the_server(record: Record, folder: Path, world: SlotWorld):
    stored = saved(record, folder)
    path = folder / "head-1.bin"
    path.write_bytes(path.read_bytes()[:50])
    assert not slot_states.restore(record, folder, stored, 0)
    assert not [asked for asked, _ in world.requests if "restore" in asked]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("name", "value"), [("build", "b2"), ("template", "other"), ("context", 8192)])
def test_a_state_of_another_server_is_deleted(
    record: Record, folder: Path, world: SlotWorld, name: str, value: object
):
    stored = saved(record, folder)
    setattr(world, name, value)
    assert not slot_states.restore(record, folder, stored, 0)
    assert not [asked for asked, _ in world.requests if "restore" in asked]
    assert list(folder.iterdir()) == []


def test_a_state_that_the_server_refuses_is_deleted(record: Record, folder: Path, world: SlotWorld):
    stored = saved(record, folder)
    world.refuses.add("restore")
    assert not slot_states.restore(record, folder, stored, 0)
    assert slot_states.states_in(folder) == []


def test_a_note_that_is_none_is_deleted_with_its_state(record: Record, folder: Path, world: SlotWorld):
    saved(record, folder)
    (folder / "head-1.json").write_text("[1, 2", "utf-8")
    assert slot_states.states_in(folder) == []
    assert list(folder.iterdir()) == []


def test_a_state_that_is_being_written_is_left_alone(folder: Path):
    folder.mkdir(parents=True)
    (folder / "new.bin").write_bytes(b"half")
    assert slot_states.states_in(folder) == []
    assert (folder / "new.bin").exists()


def test_the_state_of_a_removed_session_is_deleted(
    record: Record, folder: Path, world: SlotWorld, tmp_path: Path
):
    session = tmp_path / "session-1"
    session.mkdir()
    saved(record, folder, "session-1", str(session))
    assert len(slot_states.states_in(folder)) == 1
    session.rmdir()
    assert slot_states.states_in(folder) == []
    assert list(folder.iterdir()) == []


def test_what_was_used_longest_ago_goes_first(record: Record, folder: Path, world: SlotWorld):
    size = 0
    for age, name in ((300, "middle"), (900, "old"), (100, "new")):
        size = saved(record, folder, name).size
        moment = (folder / f"{name}.bin").stat().st_mtime - age
        os.utime(folder / f"{name}.bin", (moment, moment))
    assert slot_states.prune(folder.parent, 2 * size) == 2 * size
    assert [state.name for state in slot_states.states_in(folder)] == ["new", "middle"]


def test_what_is_from_before_the_clock_was_set_back_does_not_keep_out_what_is_new(
    record: Record, folder: Path, world: SlotWorld
):
    saved(record, folder, "of-the-future")
    size = saved(record, folder, "new").size
    os.utime(folder / "of-the-future.bin", (4e9, 4e9))
    assert slot_states.prune(folder.parent, size) == size
    assert [state.name for state in slot_states.states_in(folder)] == ["new"]


def test_using_a_state_makes_it_young(record: Record, folder: Path, world: SlotWorld):
    used, _ = saved(record, folder, "used"), saved(record, folder, "unused")
    for name, age in (("used", 900), ("unused", 100)):
        moment = (folder / f"{name}.bin").stat().st_mtime - age
        os.utime(folder / f"{name}.bin", (moment, moment))
    assert slot_states.restore(record, folder, used, 0)
    assert [state.name for state in slot_states.states_in(folder)] == ["used", "unused"]


def test_saving_again_replaces_the_state(record: Record, folder: Path, world: SlotWorld):
    saved(record, folder)
    world.prompts[0] = PROMPT[:-3]
    saved(record, folder)
    [state] = slot_states.states_in(folder)
    assert state.tokens == len(PROMPT) - 3
    assert json.loads((folder / "head-1.json").read_text("utf-8"))["tokens"] == state.tokens


def test_nothing_fits_a_disk_that_is_full(folder: Path):
    assert slot_states.has_room(folder, 1)
    assert not slot_states.has_room(folder, 10**18)


def test_speed_and_size_are_known_from_what_is_kept(record: Record, folder: Path, world: SlotWorld):
    assert slot_states.bytes_per_token(folder) is None
    assert slot_states.prefill_rate(folder) is None
    stored = saved(record, folder)
    assert slot_states.bytes_per_token(folder) == stored.size / stored.tokens
    assert slot_states.prefill_rate(folder) == stored.tokens / 10.0

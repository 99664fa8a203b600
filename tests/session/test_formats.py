"""Session files of other versions."""

from pathlib import Path

import pytest

from agent.core.errors import UsageError
from agent.core.messages import AssistantMessage, SystemMessage, UserMessage
from agent.session.formats import FORMAT_VERSION, messages_from_events, require_known_format
from agent.session.store import EVENTS_NAME, SessionStore, load

OLD = Path(__file__).parents[1] / "cases" / "sessions" / "format-1-run.jsonl"


def test_the_conversation_of_an_old_run_is_made_of_its_events() -> None:
    assert messages_from_events(load(OLD)) == [
        SystemMessage(""),
        UserMessage("Say what is in a.txt"),
        AssistantMessage("I look.", "hm"),
        UserMessage("Result of read:\n```\n1: one\n```"),
        AssistantMessage("It says one.", ""),
    ]


def test_a_file_of_this_version_and_an_older_one_may_go_on(tmp_path: Path) -> None:
    with SessionStore.create(tmp_path / "state", tmp_path) as store:
        require_known_format(store.path)
    require_known_format(OLD)


@pytest.mark.parametrize("line", [b"", b"{torn", b"\0\0\0\0", b'{"type":"session","format":"odd"}\n'])
def test_a_header_that_cannot_be_read_is_no_later_version(tmp_path: Path, line: bytes) -> None:
    (tmp_path / EVENTS_NAME).write_bytes(line)
    require_known_format(tmp_path / EVENTS_NAME)


def test_a_file_of_a_later_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / EVENTS_NAME).write_text(f'{{"type":"session","format":{FORMAT_VERSION + 1}}}\n', "utf-8")
    with pytest.raises(UsageError, match="recorded by a later version"):
        require_known_format(tmp_path / EVENTS_NAME)

"""Sessions as Markdown, HTML and JSON."""

import json

import pytest

from agent.core.errors import UsageError
from agent.session.export import FORMS, exported
from agent.session.readable import describe

RECORDS = (
    {"type": "session", "id": "one", "task": "Fix <b> & `it`", "started": "2026", "profile": "p"},
    {"type": "user_message", "text": "Use sk-abcdefghijklmnopqrstuv and hunter2hunter2\u2028here"},
    {"type": "assistant_message", "text": "<script>alert(1)</script>", "reasoning": "I think"},
    {"type": "tool_started", "tool": "shell", "arguments": {"command": "curl https://me:pass@host/"}},
    {"type": "tool_finished", "tool": "shell", "outcome": "ok", "text": "````\n\x1b[31mred\ud800"},
    {"type": "unheard_of"},
    {"type": "turn_finished", "reason": "done"},
)


def export(form: str) -> str:
    return "".join(exported(RECORDS, form, ("hunter2hunter2",)))


@pytest.mark.parametrize("form", FORMS)
def test_no_form_has_secrets_in_it(form: str) -> None:
    text = export(form)
    assert "I think" in text
    for secret in ("sk-abcdef", "hunter2", "me:pass"):
        assert secret not in text
    text.encode("utf-8")


def test_json_has_every_record() -> None:
    data = json.loads(export("json"))
    assert data["export"] == 1
    assert [record["type"] for record in data["records"]] == [record["type"] for record in RECORDS]


def test_html_runs_nothing_that_a_model_wrote() -> None:
    text = export("html")
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "default-src 'none'" in text
    assert "\x1b" not in text


def test_markdown_fences_cannot_be_closed_by_what_is_in_them() -> None:
    assert "`````\n````" in export("markdown")


def test_another_form_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be exported as 'pdf'"):
        export("pdf")


CALL = {"type": "assistant_message", "text": '{\n "tool": "write", "path": "a.py", "content": "all of it"}'}
END = {"type": "assistant_message", "text": '{"tool": "finish", "answer": "I mended it."}'}
DATA = {"type": "assistant_message", "text": '{"name": "what was asked for"}'}


def test_calls_that_a_model_writes_as_text_are_not_repeated_as_what_it_said() -> None:
    text = "".join(exported((CALL, END, DATA), "markdown", ()))
    assert "all of it" not in text
    assert "I mended it." in text
    assert "what was asked for" in text


def test_a_session_that_is_shown_has_the_answer_and_no_calls_as_text() -> None:
    assert describe(CALL) == describe({"type": "prompt_head", "tools": {"read": "bb32"}}) == []
    assert describe({"type": "branch", "branch": "main"}) == []
    assert describe(END) == ["I mended it."]
    assert describe({"type": "assistant_message", "text": '{"tool": "write", "cut o'}) == [
        '{"tool": "write", "cut o'
    ]


def test_what_allowed_a_call_does_not_look_like_the_reason_of_its_failure() -> None:
    record = {"type": "tool_finished", "outcome": "error", "seconds": 1, "decision": "a is in the workspace"}
    assert describe(record) == ["  error after 1.0 s (allowed: a is in the workspace)"]
    assert describe({**record, "outcome": "denied"}) == ["  denied after 1.0 s (a is in the workspace)"]

"""Calls that wait for a person, and what each answer does."""

from pathlib import Path
from typing import Any

import pytest

from agent.app.turns.workbench import RuleGate
from agent.config.trust import TrustStore
from agent.core.errors import UsageError
from agent.core.handle import Answer
from agent.permissions.rules import parse_rules
from tests.app.talk import Talk, extends, messages_of, records_in, talking
from tests.conftest import StartServer
from tests.fakes.script import call
from tools.multi_edit import MultiEditParams, MultiEditTool


async def asked(talk: Talk, text: str = "Do it", count: int = 1) -> Any:
    if count == 1:
        talk.session.prompt(text)
    return await talk.until("approval_request", count)


async def test_a_command_is_shown_taken_apart_and_runs_once_allowed(scripted_server: StartServer, work: Path):
    line = "touch made && timeout 5 make all"
    server = scripted_server(call("shell", command=line), "Done.")
    async with talking(work, server) as talk:
        request = await asked(talk)
        assert not (work / "made").exists()
        talk.session.answer(request.request_id, Answer(kind="once"))
        await talk.until("turn_finished")
    assert request.commands == ("touch made", "timeout 5 make all", "make all")
    assert request.call_id == talk.of("tool_started")[0].call_id
    assert (work / "made").exists()
    assert talk.of("approval_settled")[0].outcome == "once"
    assert talk.of("tool_finished")[0].decision == "allowed by the user (once)"


async def test_an_edit_is_shown_as_a_diff_before_it_is_made(scripted_server: StartServer, work: Path):
    (work / "a.py").write_text("x = 1\n", "utf-8")
    server = scripted_server(
        call("read", path="a.py"), call("edit", path="a.py", old="x = 1", new="x = 2"), "Done."
    )
    async with talking(work, server) as talk:
        request = await asked(talk)
        assert (work / "a.py").read_text("utf-8") == "x = 1\n"
        talk.session.answer(request.request_id, Answer(kind="once"))
        await talk.until("turn_finished")
    assert [(diff.path, diff.before, diff.after) for diff in request.diffs] == [
        ("a.py", "x = 1\n", "x = 2\n")
    ]
    assert request.suggested_rule == "edit(./a.py)"
    assert (work / "a.py").read_text("utf-8") == "x = 2\n"


async def test_nobody_is_asked_about_an_edit_that_cannot_be_made(scripted_server: StartServer, work: Path):
    (work / "a.py").write_text("x = 1\n", "utf-8")
    server = scripted_server(call("edit", path="a.py", old="y = 7", new="y = 8"), "Oh.")
    async with talking(work, server) as talk:
        await talk.turn("Do it")
    assert not talk.of("approval_request")
    assert talk.of("tool_finished")[0].outcome == "error"
    assert "was not found" in messages_of(server)[1][-1]["content"]


async def test_a_rule_for_the_session_asks_no_second_time_and_is_not_written(
    scripted_server: StartServer, work: Path, homes: Path
):
    server = scripted_server(call("shell", command="mkdir one"), call("shell", command="mkdir two"), "Done.")
    async with talking(work, server) as talk:
        request = await asked(talk)
        talk.session.answer(request.request_id, Answer(kind="session", rule="shell(mkdir *)"))
        await talk.until("turn_finished")
    assert len(talk.of("approval_request")) == 1
    assert (work / "two").is_dir()
    assert not (homes / "config").exists()


async def test_a_rule_for_good_goes_into_the_persons_file(
    scripted_server: StartServer, work: Path, homes: Path
):
    (homes / "config").mkdir()
    file = homes / "config" / "config.toml"
    file.write_text('# mine\n[permissions]\nallow = ["shell(ls *)"]\n', "utf-8")
    server = scripted_server(call("shell", command="mkdir one"), "Done.")
    async with talking(work, server) as talk:
        request = await asked(talk)
        talk.session.answer(request.request_id, Answer(kind="always", rule=request.suggested_rule))
        await talk.until("turn_finished")
    assert file.read_text("utf-8") == ('# mine\n[permissions]\nallow = ["shell(ls *)", "shell(mkdir one)"]\n')
    assert talk.of("approval_settled")[0].outcome == "always"


async def test_a_rule_for_good_goes_into_the_file_of_a_trusted_project_which_stays_trusted(
    scripted_server: StartServer, work: Path, homes: Path
):
    file = work / ".agent" / "config.toml"
    file.parent.mkdir()
    file.write_text('[permissions]\nallow = ["shell(ls *)"]\n', "utf-8")
    TrustStore.of().trust(work, file.read_bytes())
    server = scripted_server(call("shell", command="mkdir one"), "Done.")
    async with talking(work, server) as talk:
        request = await asked(talk)
        talk.session.answer(request.request_id, Answer(kind="always", rule=request.suggested_rule))
        await talk.until("turn_finished")
    assert "shell(mkdir one)" in file.read_text("utf-8")
    assert TrustStore.of().trusts(work, file.read_bytes())
    assert not (homes / "config").exists()


async def test_a_rule_that_cannot_be_kept_still_allows_the_call(
    scripted_server: StartServer, work: Path, homes: Path
):
    (homes / "config").mkdir()
    (homes / "config" / "config.toml").write_text("this is no TOML", "utf-8")
    server = scripted_server(call("shell", command="mkdir one"), "Done.")
    async with talking(work, server) as talk:
        request = await asked(talk)
        talk.session.answer(request.request_id, Answer(kind="always", rule="shell(mkdir *)"))
        await talk.until("turn_finished")
    assert (work / "one").is_dir()
    assert talk.of("approval_settled")[0].outcome == "session"
    assert "not kept for good" in talk.of("notice")[-1].text


async def test_a_denial_reaches_the_model_with_its_reason(scripted_server: StartServer, work: Path):
    server = scripted_server(call("shell", command="mkdir one"), "Then not.")
    async with talking(work, server) as talk:
        request = await asked(talk)
        talk.session.answer(request.request_id, Answer(kind="deny", reason="use src instead"))
        assert (await talk.until("turn_finished")).reason == "done"
    assert not (work / "one").exists()
    assert talk.of("tool_finished")[0].outcome == "denied"
    assert messages_of(server)[1][-1]["content"] == "Denied: the user does not want this: use src instead"


async def test_a_cancel_withdraws_an_open_question(scripted_server: StartServer, work: Path):
    server = scripted_server(call("shell", command="mkdir one"), "Better.")
    async with talking(work, server) as talk:
        request = await asked(talk)
        talk.session.cancel()
        assert (await talk.until("turn_finished")).reason == "cancelled"
        assert talk.kinds("approval_settled", "tool_finished") == ["approval_settled", "tool_finished"]
        assert talk.of("approval_settled")[0].outcome == "withdrawn"
        talk.session.answer(request.request_id, Answer(kind="once"))
        await talk.turn("Go on")
    assert not (work / "one").exists()
    assert extends(*messages_of(server))


async def test_a_mode_holds_from_the_next_call_on_and_is_recorded(
    scripted_server: StartServer, work: Path, homes: Path
):
    server = scripted_server(
        call("write", path="a", content="1\n"), call("write", path="b", content="1\n"), "Done."
    )
    async with talking(work, server) as talk:
        request = await asked(talk)
        talk.session.set_mode("accept-edits")
        talk.session.answer(request.request_id, Answer(kind="once"))
        await talk.until("turn_finished")
        assert talk.session.facts.mode == "accept-edits"
    assert len(talk.of("approval_request")) == 1
    assert (work / "b").exists()
    assert [one["mode"] for one in records_in(homes / "state") if one["type"] == "mode_changed"] == [
        "accept-edits"
    ]


async def test_plan_mode_changes_nothing_and_says_so_to_the_model(scripted_server: StartServer, work: Path):
    server = scripted_server(call("write", path="a", content="1\n"), "Here is the plan.")
    async with talking(work, server, mode="plan") as talk:
        await talk.turn("Do it")
    assert not (work / "a").exists()
    assert "plan mode only reads" in messages_of(server)[1][-1]["content"]


async def test_a_mode_that_does_not_exist_is_refused(scripted_server: StartServer, work: Path):
    wrong: Any = "yolo"
    async with talking(work, scripted_server()) as talk:
        with pytest.raises(UsageError, match="no mode 'yolo'"):
            talk.session.set_mode(wrong)


EDITS = {"edits": [{"path": "a.py", "old": "x = 1", "new": "x = 2"}]}


async def test_a_rule_about_a_tool_that_calls_another_holds(scripted_server: StartServer, work: Path):
    (work / "a.py").write_text("x = 1\n", "utf-8")
    server = scripted_server(call("read", path="a.py"), call("multi_edit", **EDITS), "Done.")
    async with talking(work, server, mode="accept-edits", deny=("multi_edit",)) as talk:
        await talk.turn("Do it")
        assert [event.outcome for event in talk.of("tool_finished")] == ["ok", "denied"]
    gate = RuleGate(workspace=work, mode="accept-edits", rules=parse_rules(ask=["multi_*"]), protected=())
    tool = MultiEditTool()
    decided = await gate.decide(*tool.acts_as(MultiEditParams.model_validate(EDITS)))
    assert not decided.allowed
    assert "multi_*" in decided.reason

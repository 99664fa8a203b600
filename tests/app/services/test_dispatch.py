"""What a front may ask of a session besides turns."""

import asyncio
from pathlib import Path

import pytest

from agent.core.errors import UsageError
from tests.app.talk import extends, messages_of, talking
from tests.conftest import StartServer
from tests.fakes.script import call


async def test_undo_and_redo_of_an_open_session(scripted_server: StartServer, work: Path):
    (work / "a.py").write_text("x = 1\n", "utf-8")
    server = scripted_server(
        call("read", path="a.py"),
        call("edit", path="a.py", old="x = 1", new="x = 2"),
        call("write", path="b.py", content="y\n"),
        "Done.",
        "I see.",
        call("edit", path="a.py", old="x = 2", new="x = 3"),
        "Again.",
    )
    async with talking(work, server, mode="accept-edits") as talk:
        await talk.turn("Do it")
        diff = await talk.session.command("diff", {})
        undone = await talk.session.command("undo", {})
        assert (undone.restored, undone.deleted) == (("a.py",), ("b.py",))
        assert (work / "a.py").read_text("utf-8") == "x = 1\n"
        assert not (work / "b.py").exists()
        assert await talk.session.command("diff", {}) == ""
        redone = await talk.session.command("redo", {})
        assert sorted(redone.restored) == ["a.py", "b.py"]
        assert (work / "a.py").read_text("utf-8") == "x = 2\n"
        await talk.turn("And?")
        told = messages_of(server)[4][-1]["content"]
        assert "undid your changes: a.py, b.py" in told
        assert told.endswith("And?")
        await talk.turn("Once more")
        assert (work / "a.py").read_text("utf-8") == "x = 3\n"
        last = await talk.session.command("undo", {})
        assert (last.turn, last.task, last.goes_further) == (3, "Once more", True)
        assert (work / "a.py").read_text("utf-8") == "x = 2\n"
        first = await talk.session.command("undo", {})
        assert (first.turn, first.task, first.goes_further) == (1, "Do it", False)
        assert (work / "a.py").read_text("utf-8") == "x = 1\n"
        with pytest.raises(UsageError, match="nothing more to undo"):
            await talk.session.command("undo", {})
        assert [(await talk.session.command("redo", {})).turn for _ in range(2)] == [1, 3]
        assert (work / "a.py").read_text("utf-8") == "x = 3\n"
    assert "-x = 1\n+x = 2\n" in diff
    assert "+++ b/b.py" in diff


async def test_there_may_be_nothing_to_undo(scripted_server: StartServer, work: Path):
    async with talking(work, scripted_server()) as talk:
        with pytest.raises(UsageError, match="has changed no files"):
            await talk.session.command("undo", {})
        with pytest.raises(UsageError, match="nothing to redo"):
            await talk.session.command("redo", {})


async def test_undo_waits_for_no_turn(scripted_server: StartServer, work: Path):
    server = scripted_server({"fault": "silence"})
    async with talking(work, server) as talk:
        talk.session.prompt("one")
        with pytest.raises(UsageError, match="has to wait"):
            await talk.session.command("undo", {})


async def test_a_persons_command_needs_no_permission_and_is_told_to_the_model(
    scripted_server: StartServer, work: Path
):
    server = scripted_server("Hello.", "I see.")
    async with talking(work, server, mode="plan") as talk:
        await talk.turn("Hi")
        run = await talk.session.command("shell", {"command": "echo made > made; cat made"})
        assert run.outcome == "ok"
        assert talk.of("tool_finished")[0].call_id == run.call_id
        assert talk.of("tool_output")[0].text == "made\n"
        await talk.turn("Did you see?")
    assert not talk.of("approval_request")
    told = messages_of(server)[1][-1]["content"]
    assert told.startswith("I ran `echo made > made; cat made` myself:\n```\nmade\nexit code 0\n```\n\n")
    assert told.endswith("\n\nDid you see?")
    assert extends(*messages_of(server))


async def test_a_persons_command_can_stay_out_of_the_context(scripted_server: StartServer, work: Path):
    server = scripted_server("Hello.", "Yes.")
    async with talking(work, server) as talk:
        await talk.turn("Hi")
        await talk.session.command("shell", {"command": "echo secret", "context": False})
        await talk.turn("Still there?")
    assert "secret" not in str(messages_of(server)[1])


async def test_a_persons_command_runs_before_the_server_is_up(scripted_server: StartServer, work: Path):
    server = scripted_server("Hello.", loading=8)
    async with talking(work, server) as talk:
        await talk.session.command("shell", {"command": "echo early"})
        await talk.turn("Hi")
    assert [one["role"] for one in messages_of(server)[0]] == ["system", "user"]
    told = messages_of(server)[0][1]["content"]
    assert "early\nexit code 0\n```\n\n" in told
    assert told.endswith("Hi")


async def test_a_persons_command_is_ended_by_a_cancel(scripted_server: StartServer, work: Path):
    async with talking(work, scripted_server()) as talk:
        running = asyncio.ensure_future(talk.session.command("shell", {"command": "echo go; sleep 600"}))
        await talk.until("tool_output")
        talk.session.cancel()
        assert (await running).outcome == "cancelled"


async def test_what_fills_the_context_is_counted_by_the_server(scripted_server: StartServer, work: Path):
    (work / "a.txt").write_text("one two three\n", "utf-8")
    server = scripted_server(call("read", path="a.txt"), "It counts.")
    async with talking(work, server) as talk:
        await talk.turn("What is in a.txt?")
        report = await talk.session.command("context", {})
    assert report.is_exact
    assert {part.kind: part.messages for part in report.parts} == {
        "system": 1,
        "user": 1,
        "assistant": 2,
        "results": 1,
        "tools": 7,
    }
    assert report.total <= report.used <= report.window == 32_768
    assert all(part.seconds is not None and part.seconds > 0 for part in report.parts)


async def test_what_fills_the_context_is_estimated_without_a_server(scripted_server: StartServer, work: Path):
    server = scripted_server("Hello.")
    async with talking(work, server) as talk:
        await talk.turn("Hi")
    async with talking(work, scripted_server(loading=10**6), resume="last") as talk:
        report = await talk.session.command("context", {})
    assert not report.is_exact
    assert [part.kind for part in report.parts] == ["system", "user", "assistant"]


async def test_another_profile_goes_on_with_the_conversation(scripted_server: StartServer, work: Path):
    (work / "a.txt").write_text("one\n", "utf-8")
    first = scripted_server(call("read", path="a.txt"), "It says one.")
    second = scripted_server(call("finish", answer="Still one."), n_ctx=8192)
    async with talking(work, first, second) as talk:
        await talk.turn("What is in a.txt?")
        cost = await talk.session.command("profile", {"name": "bound-1"})
        assert (cost.applied, cost.measured_with, talk.session.facts.profile) == (
            False,
            "embedded",
            "embedded",
        )
        assert cost.tokens > 100
        assert cost.seconds == pytest.approx(cost.tokens / 1000)
        switch = await talk.session.command("profile", {"name": "bound-1", "apply": True})
        assert switch.applied
        assert talk.session.facts.profile == "bound-1"
        assert talk.session.facts.context_tokens == 8192
        assert (await talk.turn("And now?")).answer == "Still one."
    assert talk.of("session_started")[-1].tool_protocol == "constrained"
    assert talk.of("prefix_broken")
    [request] = messages_of(second)
    assert [one["role"] for one in request] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert request[2]["content"] == '{"tool": "read", "path": "a.txt"}'
    assert request[3]["content"].startswith("Result of read:")


async def test_a_profile_that_does_not_come_up_leaves_the_present_one(
    scripted_server: StartServer, work: Path
):
    first, second = scripted_server("Hello.", "Still here."), scripted_server()
    second.close()
    async with talking(work, first, second) as talk:
        await talk.turn("Hi")
        with pytest.raises(Exception, match="no server answers"):
            await talk.session.command("profile", {"name": "other-1", "apply": True})
        assert talk.session.facts.profile == "embedded"
        assert (await talk.turn("Are you there?")).answer == "Still here."


async def test_a_session_resumed_after_a_switch_goes_on_from_there(scripted_server: StartServer, work: Path):
    first = scripted_server("Hello.")
    second = scripted_server(call("finish", answer="One."), call("finish", answer="Two."))
    async with talking(work, first, second) as talk:
        await talk.turn("Hi")
        await talk.session.command("profile", {"name": "bound-1", "apply": True})
        await talk.turn("one")
    async with talking(work, second, protocol="constrained", resume="last") as talk:
        await talk.turn("two")
        assert not talk.of("prefix_broken")
    assert extends(*messages_of(second))


async def test_the_server_panel_tells_what_is_known(scripted_server: StartServer, work: Path):
    server = scripted_server("Hello.")
    async with talking(work, server) as talk:
        await talk.turn("Hi")
        panel = await talk.session.command("server", {})
        with pytest.raises(UsageError, match="no server of ours"):
            await talk.session.command("server", {"action": "stop"})
    assert (panel.state, panel.url, panel.context_tokens) == ("ready", server.url, 32_768)


async def test_a_session_can_be_named_and_is_listed(scripted_server: StartServer, work: Path):
    async with talking(work, scripted_server("Hello.")) as talk:
        await talk.turn("Hi there")
        assert await talk.session.command("rename", {"title": " My \n session "}) == "My session"
        [row] = await talk.session.command("sessions", {})
    assert (row.title, row.task, row.kind) == ("My session", "Hi there", "chat")


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("dance", {}, "there is no command 'dance'"),
        ("compact", {"instruction": 7}, "has to be a text"),
        ("shell", {}, "needs a text 'command'"),
        ("rename", {"title": 7}, "needs a text 'title'"),
        ("server", {"action": "kick"}, "no action 'kick'"),
    ],
)
async def test_wrong_commands_are_explained(
    scripted_server: StartServer, work: Path, name: str, arguments: dict[str, object], words: str
):
    async with talking(work, scripted_server()) as talk:
        with pytest.raises(UsageError, match=words):
            await talk.session.command(name, arguments)

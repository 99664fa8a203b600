"""Files that a person names with `@` in what they type."""

import asyncio
from datetime import date
from pathlib import Path

import pytest

from agent.app.chat.mentions import Mention, mentions_in
from agent.app.extras.skill_shelf import from_the_repository
from agent.core.handle import Answer
from tests.app.talk import Talk, extends, messages_of, talking
from tests.conftest import StartServer
from tests.fakes.script import Step
from tests.fakes.scripted_server import ScriptedServer


def told(server: ScriptedServer, request: int = 0) -> str:
    """What the last user message of a request holds."""
    return messages_of(server)[request][-1]["content"]


def notices(talk: Talk) -> list[str]:
    return [event.text for event in talk.of("notice")]


@pytest.fixture
def repo(work: Path) -> Path:
    (work / "src").mkdir()
    (work / "src" / "a.py").write_text("".join(f"line {number}\n" for number in range(1, 31)), "utf-8")
    (work / "src" / "b.py").write_text("b = 1\n", "utf-8")
    (work / ".gitignore").write_text("*.log\n", "utf-8")
    (work / "src" / "noise.log").write_text("noise\n", "utf-8")
    (work / "my notes.txt").write_text("note\n", "utf-8")
    (work / ".env").write_text("TOKEN=hunter2hunter2\n", "utf-8")
    return work


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("look at @src/a.py", [Mention("src/a.py")]),
        ("(@src/a.py), and @src/b.py.", [Mention("src/a.py"), Mention("src/b.py")]),
        ("@src/a.py:10-20!", [Mention("src/a.py", 10, 20)]),
        ("@src/a.py:7", [Mention("src/a.py", 7, 7)]),
        ("@src/a.py:7-", [Mention("src/a.py", 7)]),
        ('@"my notes.txt" and @"my notes.txt":1-2', [Mention("my notes.txt"), Mention("my notes.txt", 1, 2)]),
        ("@src/", [Mention("src/")]),
        ("@src/a.py @src/a.py", [Mention("src/a.py")]),
        ("me@src/a.py", []),
        ("```\n@src/a.py\n```\n`@src/b.py`", []),
        (from_the_repository("```\n@src/a.py\n~~~\n@src/b.py"), []),
    ],
)
def test_mentions_are_found(repo: Path, text: str, found: list[Mention]):
    assert mentions_in(text, repo) == (found, [])


def test_what_names_nothing_is_missing(repo: Path):
    assert mentions_in("@src/gone.py, @you @src/a.py:x", repo) == ([], ["src/gone.py", "you", "src/a.py:x"])


async def test_a_file_rides_in_front_of_what_was_typed(scripted_server: StartServer, repo: Path):
    server = scripted_server("I see.", "Yes.")
    async with talking(repo, server) as talk:
        await talk.turn("Explain @src/b.py")
        await talk.turn("And?")
    assert told(server).endswith("src/b.py:\n```\n1\tb = 1\n```\n\nExplain @src/b.py")
    assert [event.text for event in talk.of("user_message")] == ["Explain @src/b.py", "And?"]
    assert extends(*messages_of(server))


async def test_lines_of_a_file_are_attached(scripted_server: StartServer, repo: Path):
    server = scripted_server("I see.")
    async with talking(repo, server) as talk:
        await talk.turn("Explain @src/a.py:10-11")
    assert (
        "src/a.py, lines 10-11:\n```\n10\tline 10\n11\tline 11\n(lines 10-11 of 30; go on with start=12)\n```"
        in told(server)
    )
    assert not notices(talk)


async def test_a_folder_is_attached_as_a_listing_without_what_is_ignored(
    scripted_server: StartServer, repo: Path
):
    server = scripted_server("I see.")
    async with talking(repo, server) as talk:
        await talk.turn("What is in @src/ ?")
    assert "src/:\n```\na.py\nb.py\n```" in told(server)


async def test_what_is_missing_stays_as_it_was_typed(scripted_server: StartServer, repo: Path):
    server = scripted_server("Hm.")
    async with talking(repo, server) as talk:
        await talk.turn("Explain @gone.py")
    assert told(server).endswith("\n\nExplain @gone.py")
    assert notices(talk) == ["no file or folder of that name, sent as it is: @gone.py"]


async def test_a_secret_is_asked_about_and_stays_out_when_denied(scripted_server: StartServer, repo: Path):
    server = scripted_server("Hm.")
    async with talking(repo, server, mode="auto") as talk:
        talk.session.prompt("Read @.env")
        request = await talk.until("approval_request")
        assert (request.tool, request.call_id, request.arguments) == ("read", "", {"path": ".env"})
        talk.session.answer(request.request_id, Answer(kind="deny"))
        await talk.until("turn_finished")
    assert "hunter2" not in str(messages_of(server))
    assert notices(talk) == ["@.env is not attached: the user does not want this"]


async def test_a_cancel_withdraws_the_question_and_gives_the_prompt_back(
    scripted_server: StartServer, repo: Path
):
    server = scripted_server("Hm.")
    async with talking(repo, server) as talk:
        talk.session.prompt("Read @.env")
        await talk.until("approval_request")
        talk.session.cancel()
        assert (await talk.until("turn_finished")).reason == "cancelled"
        assert talk.of("approval_settled")[0].outcome == "withdrawn"
        assert talk.of("queue_changed")[-1].follow_ups == ("Read @.env",)
        assert talk.session.take_back_queued() == ["Read @.env"]
    assert not server.chats


async def test_a_deny_rule_holds_for_what_is_mentioned(scripted_server: StartServer, repo: Path):
    server = scripted_server("Hm.")
    async with talking(repo, server, deny=("read(src/b.py)",)) as talk:
        await talk.turn("Read @src/b.py")
    assert "b = 1" not in told(server)
    assert len(notices(talk)) == 1


@pytest.mark.parametrize("path", ["../outside.txt", "link"])
async def test_what_is_outside_stays_out(scripted_server: StartServer, repo: Path, path: str):
    (repo.parent / "outside.txt").write_text("far\n", "utf-8")
    (repo / "link").symlink_to(repo.parent / "outside.txt")
    server = scripted_server("Hm.")
    async with talking(repo, server) as talk:
        await talk.turn(f"Read @{path}")
    assert "far" not in told(server)
    assert notices(talk) == [f"@{path} is not attached: it is outside of the workspace"]


async def test_a_large_file_is_attached_as_far_as_there_is_room(scripted_server: StartServer, repo: Path):
    (repo / "big.txt").write_text("".join(f"{number} {'x' * 60}\n" for number in range(5000)), "utf-8")
    server = scripted_server("Hm.", n_ctx=4096)
    async with talking(repo, server) as talk:
        await talk.turn("Read @big.txt and @src/a.py")
    assert "(read the rest with start=" in told(server)
    assert len(told(server)) < 4096 * 0.35 * 3 + 500
    assert notices(talk)[0].startswith("@big.txt is attached in part: read the rest with start=")
    assert notices(talk)[1] == "@src/a.py is not attached: the context has no room for it"


async def test_steering_mentions_files_too(scripted_server: StartServer, repo: Path):
    server = scripted_server({"fault": "drop", "text": "Half", "times": 1}, "Whole.")
    async with talking(repo, server) as talk:
        talk.session.prompt("one")
        talk.session.steer("see @src/b.py")
        await talk.until("turn_finished")
    assert told(server, -1).endswith("src/b.py:\n```\n1\tb = 1\n```\n\nsee @src/b.py")
    assert [event.text for event in talk.of("user_message")] == ["one", "see @src/b.py"]


async def test_the_first_message_says_where_the_model_is(scripted_server: StartServer, repo: Path):
    await (await asyncio.create_subprocess_exec("git", "init", "-qb", "main", str(repo))).wait()
    server = scripted_server("Hello.", "Yes.")
    async with talking(repo, server, today=lambda: date(2026, 2, 28)) as talk:
        await talk.turn("Hi")
        await talk.turn("Are you there?")
    expected = (
        "You are in the working folder, on the git branch main. "
        "Its files: .env, .gitignore, my notes.txt, src/a.py, src/b.py\n\nToday is 2026-02-28.\n\nHi"
    )
    assert messages_of(server)[0][1]["content"] == expected
    assert talk.of("user_message")[0].text == "Hi"
    assert extends(*messages_of(server))


async def test_branch_that_is_another_one_now_is_told_once_with_the_newest_message(
    scripted_server: StartServer, repo: Path
):
    async def git(*words: str) -> None:
        await (await asyncio.create_subprocess_exec("git", *words, cwd=repo)).wait()

    await git("init", "-qb", "main")
    server = scripted_server(Step(text="Yes.", times=0))
    async with talking(repo, server) as talk:
        await talk.turn("Hi")
        await git("symbolic-ref", "HEAD", "refs/heads/v1.2")
        for _ in range(200):  # git may be slow to say so, and nobody waits for it
            await talk.turn("Go on")
            if told(server, -1) != "Go on":
                break
    assert told(server, -1) == "You are now on the git branch v1.2.\n\nGo on"
    await git("symbolic-ref", "HEAD", "refs/heads/main")
    async with talking(repo, server, resume="last") as talk:
        for _ in range(200):
            await talk.turn("And?")
            if told(server, -1) != "And?":
                break
        await talk.turn("Good")
    assert [one["content"] for one in messages_of(server)[-1] if one["role"] == "user"][-2:] == [
        "You are now on the git branch main.\n\nAnd?",
        "Good",
    ]
    assert extends(*messages_of(server)[-2:])


async def test_date_is_told_again_on_another_day(scripted_server: StartServer, repo: Path):
    server = scripted_server(Step(text="Yes.", times=0))
    async with talking(repo, server, today=lambda: date(2026, 2, 28)) as talk:
        await talk.turn("Hi")
        await talk.turn("Are you there?")
    async with talking(repo, server, resume="last", today=lambda: date(2026, 3, 1)) as talk:
        await talk.turn("And now?")
        await talk.turn("Good")
    assert [one["content"] for one in messages_of(server)[-1] if one["role"] == "user"][1:] == [
        "Are you there?",
        "Today is 2026-03-01.\n\nAnd now?",
        "Good",
    ]
    assert extends(*messages_of(server)[-2:])


async def test_of_many_files_only_the_top_is_listed(scripted_server: StartServer, repo: Path):
    for number in range(80):
        (repo / "src" / f"m{number}.py").touch()
    server = scripted_server("Hello.")
    async with talking(repo, server, today=lambda: date(2026, 2, 28)) as talk:
        await talk.turn("Hi")
    expected = "You are in the working folder. In it: my notes.txt, src/\n\nToday is 2026-02-28.\n\nHi"
    assert told(server) == expected


async def test_the_folder_is_not_named_because_small_models_put_its_name_before_every_path(
    scripted_server: StartServer, repo: Path
):
    server = scripted_server("Hello.")
    async with talking(repo, server) as talk:
        await talk.turn("Hi")
    assert repo.name not in told(server).replace("working", "")


async def test_an_empty_file_and_a_file_that_is_no_text_are_said_to_be_so(
    scripted_server: StartServer, repo: Path
):
    (repo / "empty").touch()
    (repo / "picture.dat").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    server = scripted_server("Hm.")
    async with talking(repo, server) as talk:
        await talk.turn("See @empty and @picture.dat")
    assert "empty:\n```\n(empty file)\n```" in told(server)
    assert "10 bytes, no text" in told(server)
    assert not notices(talk)


async def test_lines_behind_the_end_are_refused_with_a_notice(scripted_server: StartServer, repo: Path):
    server = scripted_server("Hm.")
    async with talking(repo, server) as talk:
        await talk.turn("See @src/a.py:99")
    assert notices(talk) == ["@src/a.py is not attached: src/a.py has only 30 lines. Give a smaller start."]
    assert "line 1" not in told(server)


async def test_a_fence_is_longer_than_those_in_the_file(scripted_server: StartServer, repo: Path):
    (repo / "doc.md").write_text("````\ncode\n````\n", "utf-8")
    server = scripted_server("Hm.")
    async with talking(repo, server) as talk:
        await talk.turn("See @doc.md")
    assert "doc.md:\n`````\n1\t````\n" in told(server)

"""A live session with a server of its own: one that dies, and one whose draft does not pay."""

import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from agent.app.chat.server_watch import look_once
from agent.app.servers.fitting import fit_to_machine
from agent.app.servers.serving import Serving, choose
from agent.app.services.switching import stop_server
from agent.config.load import LoadedSettings
from agent.core.errors import UsageError
from agent.core.events import Notice
from agent.resources import runtime_folder
from agent.server import process
from tests.app.talk import Talk, extends, records_in, talking
from tests.server.gguf_models import dense

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[3]
PLAIN = 'context = 8192\n[target]\nfile = "tiny.gguf"\n[tools]\nprotocol = "native"\n'
DRAFTING = f'{PLAIN}[draft]\nfile = "draft.gguf"\n[speculation]\nkind = "draft"\nn_max = 1\n'
LONG_DRAFTS = DRAFTING.replace("n_max = 1", "n_max = 4")
# A server that was just started is asked once for a tool call.
TRIAL = {"tool_calls": [{"name": "glob", "arguments": {"pattern": "*.md"}}]}
LONG_REPLY = {"fault": "endless", "text": " ".join(str(number) for number in range(20_000))}
SLOW_REPLY = {"text": " ".join(f"line-{number}" for number in range(30)), "drafted": 40, "accepted": 20}


@dataclass
class Managed:
    """A profile `mine` whose server follows the script of the moment when it is started."""

    homes: Path
    fallback: Literal["notice", "plain"] = "notice"

    def profile(self, text: str) -> None:
        folder = self.homes / "config" / "profiles"
        folder.mkdir(parents=True)
        (folder / "mine.toml").write_text(text, "utf-8")
        models = self.homes / "data" / "models"
        models.mkdir(parents=True)
        dense(models / "tiny.gguf")
        dense(models / "draft.gguf")

    def script(self, *steps: Any) -> None:
        (self.homes / "script.json").write_text(json.dumps(steps), "utf-8")

    def serve(self, loaded: LoadedSettings) -> Serving:
        server = loaded.settings.server.model_copy(update={"reuse": False, "fallback": self.fallback})
        models = loaded.settings.models.model_copy(update={"folder": self.homes / "data" / "models"})
        changes = {"profile": "mine", "server": server, "models": models}
        settings = loaded.settings.model_copy(update=changes)
        engine = (sys.executable, "-m", "tests.e2e.scripted_engine", str(self.homes / "script.json"))
        return replace(choose(replace(loaded, settings=settings)), command=engine)

    def servers(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text("utf-8")) for path in self.homes.glob("state/run/*.record.json")]

    def kill(self) -> None:
        [record] = self.servers()
        os.kill(record["pid"], signal.SIGKILL)

    @asynccontextmanager
    async def talking(self, **options: Any) -> AsyncIterator[Talk]:
        async with talking(self.homes / "work", serve=self.serve, **options) as talk:
            yield talk


@pytest.fixture
def managed(homes: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Managed]:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    managed = Managed(homes)
    yield managed
    for record in managed.servers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(record["pid"], signal.SIGKILL)


async def test_a_server_killed_in_mid_reply_is_started_again_and_its_key_stays_secret(
    managed: Managed, homes: Path
):
    managed.profile(PLAIN)
    managed.script(TRIAL, LONG_REPLY)
    async with managed.talking(reply_tokens=10**6) as talk:
        talk.session.prompt("one")
        await talk.until("text_delta")
        managed.script("Back.", "Still here.")
        managed.kill()
        finished = await talk.until("turn_finished")
        assert (finished.reason, finished.answer) == ("done", "Back.")
        assert [event.cause for event in talk.of("retry")] == ["the server was started again"]
        engine = talk.session._live.keeper.engine
        assert engine is not None
        talk.session._live.emit(Notice(text=f"the key is {engine.endpoint.api_key}"))
        assert (await talk.turn("two")).answer == "Still here."
    assert "the key is [redacted]" in [record.get("text") for record in records_in(homes / "state")]
    assert not managed.servers()


async def test_how_fast_a_turn_was_read_chooses_the_batch_of_the_next_server(managed: Managed):
    managed.profile(f"batch = 2000\nbatch_seconds = 1.0\nthreads = 1\n{PLAIN}")
    managed.script(TRIAL, "Hello.")
    async with managed.talking() as talk:
        await talk.turn("word " * 300)
        [record] = managed.servers()
        engine = talk.session._live.keeper.engine
        assert engine is not None
        fit = fit_to_machine(engine.serving.profile)
    assert record["batch_limit"] == 0
    assert fit.batch_limit == 1000  # tok/s of the scripted engine


async def test_a_server_that_somebody_stopped_is_seen_while_nothing_runs_and_its_new_start_is_told(
    managed: Managed,
):
    managed.profile(PLAIN)
    managed.script(TRIAL, "Hello.")
    async with managed.talking() as talk:
        await talk.turn("one")
        live = talk.session._live
        await look_once(live)
        assert talk.session.facts.server == "ready"
        managed.script(TRIAL, "Back.")
        engine = live.keeper.engine
        assert engine is not None
        record = engine.serving.record_of(engine.endpoint)
        assert record is not None
        await process.stop_server(record, runtime_folder())
        await look_once(live)
        await look_once(live)
        assert talk.session.facts.server == "stopped"
        assert (await talk.turn("two")).answer == "Back."
        notices = [event.text for event in talk.of("notice")]
        assert notices.count("the server was stopped from outside; it comes back with the next message") == 1
        assert "the server was stopped from outside; it is started again" in notices
        assert [event.state for event in talk.of("server_state")].count("stopped") == 1


async def test_a_server_that_answers_another_session_is_not_stopped(managed: Managed):
    managed.profile(PLAIN)
    managed.script(TRIAL, "Hello.")
    async with managed.talking() as talk:
        await talk.turn("one")
        live = talk.session._live
        with pytest.raises(UsageError, match="answering another session") as refused:
            await stop_server(live, busy=lambda _record: True)
        assert refused.value.hint == "`agent server stop --force mine` ends that too"
        assert managed.servers()
        await stop_server(live)
        assert not managed.servers()


async def test_a_server_that_made_room_for_another_is_told_with_the_name_of_that(managed: Managed):
    managed.profile(PLAIN)
    managed.script(TRIAL, "Hello.")
    async with managed.talking() as talk:
        await talk.turn("one")
        live = talk.session._live
        engine = live.keeper.engine
        assert engine is not None
        record = engine.serving.record_of(engine.endpoint)
        assert record is not None
        await look_once(live, gone=lambda _: True, running=lambda: [replace(record, profile="other")])
        notice = await talk.until("notice")
        assert notice.text == (
            "the server was stopped to make room for the server of profile 'other'; "
            "it comes back with the next message"
        )


async def test_a_draft_that_does_not_pay_is_told_once_with_the_remedy(managed: Managed, homes: Path):
    managed.profile(DRAFTING)
    managed.script(TRIAL, *[SLOW_REPLY] * 5)
    async with managed.talking() as talk:
        await drafting_badly(managed, talk, homes)
        assert talk.session.facts.server == "ready"
    [notice] = [event.text for event in talk.of("notice") if "slower" in event.text]
    assert notice.endswith('to go without the draft: server.fallback = "plain"')


async def test_the_next_turn_goes_without_the_draft_where_that_is_wanted(managed: Managed, homes: Path):
    managed.profile(DRAFTING)
    managed.fallback = "plain"
    managed.script(TRIAL, *[SLOW_REPLY] * 5)
    async with managed.talking() as talk:
        await drafting_badly(managed, talk, homes)
        [before] = managed.servers()
        managed.script(TRIAL, "Without.")
        assert (await talk.turn("last")).answer == "Without."
        [after] = managed.servers()
    assert before["fingerprint"] != after["fingerprint"]
    [cause] = [event.cause for event in talk.of("prefix_broken")]
    assert cause.startswith("the server goes on without the draft, with an empty prompt cache")
    assert extends(["one", "two"], [event.text for event in talk.of("user_message")])
    assert not managed.servers()


async def test_drafts_become_shorter_first_and_are_given_up_where_that_does_not_help(
    managed: Managed, homes: Path
):
    managed.profile(LONG_DRAFTS)
    managed.fallback = "plain"
    managed.script(TRIAL, *[SLOW_REPLY] * 5)
    async with managed.talking() as talk:
        await drafting_badly(managed, talk, homes)
        managed.script(TRIAL, *[SLOW_REPLY] * 5)
        for text in ("four", "five", "six"):
            await talk.turn(text)
        [shorter] = managed.servers()
        panel = await talk.session.command("server", {})
        managed.script(TRIAL, *[SLOW_REPLY] * 9)
        for text in ("seven", "eight", "nine", "ten"):
            await talk.turn(text)
        [plain] = managed.servers()
    assert (shorter["draft_limit"], shorter["speculation"], shorter["degraded"]) == (1, "draft", False)
    assert panel.speculation == "draft, at most 1 at once"
    assert (plain["draft_limit"], plain["speculation"], plain["degraded"]) == (0, "none", True)
    causes = [event.cause.partition(", with")[0] for event in talk.of("prefix_broken")]
    assert causes == [
        "the server drafts at most 1 token at once",
        "the server goes on without the draft",
    ]
    remedies = [event.text.rpartition("; ")[2] for event in talk.of("notice") if "slower" in event.text]
    assert remedies == [
        "from the next turn on it drafts at most 1 token at once",
        "from the next turn on it goes without the draft",
    ]
    assert not managed.servers()


async def test_a_server_that_does_not_come_up_with_shorter_drafts_is_not_tried_again(
    managed: Managed, homes: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FAILS_WITH_DRAFTS_OF", "1")
    managed.profile(LONG_DRAFTS)
    managed.fallback = "plain"
    managed.script(TRIAL, *[SLOW_REPLY] * 5)
    async with managed.talking() as talk:
        await drafting_badly(managed, talk, homes)
        managed.script(TRIAL, *[SLOW_REPLY] * 9)
        for text in ("four", "five", "six", "seven"):
            assert (await talk.turn(text)).reason == "done"
        [kept] = managed.servers()
    assert (kept["draft_limit"], kept["degraded"]) == (0, False)
    [cause] = [event.cause for event in talk.of("prefix_broken")]
    assert cause.startswith("the server with drafts of 1 failed: ")
    assert len([event for event in talk.of("notice") if "slower" in event.text]) == 1


async def drafting_badly(managed: Managed, talk: Talk, homes: Path) -> None:
    """Three slow replies of a server that is remembered to be ten times as fast."""
    await talk.until("server_state")
    await talk.session.command("server", {"action": "start"})
    [record] = managed.servers()
    baseline = {
        "profile": "mine",
        "suite": "agent",
        "decode_rate": 1000.0,
        "prompt_rate": 5000.0,
        "speculation": "draft",
        "accept_rate": 0.8,
        "machine": "this one",
        "samples": 9,
        "measured_at": "2026-01-01T00:00:00+00:00",
    }
    stored = {record["fingerprint"]: {"agent": baseline}}
    (homes / "state" / "baselines.json").write_text(json.dumps(stored), "utf-8")
    await talk.session._live.keeper.forget()  # a baseline is read when the session comes to its server
    for text in ("one", "two", "three"):
        await talk.turn(text)

"""What a person is told where a real server has lost the prompt of a conversation, and where it has not."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.app.background import in_background
from agent.app.chat.interactive import open_session
from agent.app.servers.memory import looking_at
from agent.app.servers.serving import Serving
from agent.config.load import LoadedSettings, load_settings
from agent.core.events import AssistantReplied, StepFinished, UserMessageAdded
from agent.core.reuse import ReuseWatch
from agent.llm.stats import from_timings
from agent.resources import data_folder
from agent.server.download import obtain
from agent.server.loopback import request_json
from agent.server.profile import Profile
from agent.server.profile_files import load_profile
from agent.server.record import Endpoint, list_records
from tests.app.talk import Talk, watched
from tests.real import llama_server
from tests.real.llama_server import real_binary
from tests.real.rig import ROOT, ask
from tests.real.tiny_pair import write_target

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

PROFILE = """\
engine = "{engine}"
context = 4096
threads = 1
slots = 1
cache_ram_mib = {cache_ram}
card = "none"
[target]
file = "{file}"
{shipped}
[sampling]
temperature = 0.0
[tools]
protocol = "constrained"
"""
TURNS = 6
"""So small a model now and then says what cannot be used. That is a break of its own, and more is asked."""


def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, cache_ram: int) -> LoadedSettings:
    """A server of that engine with one slot, in folders of its own but with the model that is there."""
    folder = Path(os.environ.get("AGENT_MODELS_FOLDER") or data_folder() / "models")
    model = load_profile("embedded-small", [ROOT / "server_profiles"]).model_files[0]
    checked = f'sha256 = "{model.sha256}"\nbytes = {model.bytes}' if engine == "embedded" else ""
    binary = str(real_binary()) if engine == "llama-server" else ""
    text = PROFILE.format(engine=engine, cache_ram=cache_ram, file=obtain(model, folder), shipped=checked)
    for kind in ("config", "state", "data"):
        monkeypatch.setenv(f"AGENT_{kind.upper()}_HOME", str(tmp_path / kind))
    (tmp_path / "config/profiles").mkdir(parents=True)
    (tmp_path / "config/profiles/mine.toml").write_text(text, "utf-8")
    flags = {
        "profile": "mine",
        "models.folder": str(folder),
        "server.reuse": False,
        "permissions.mode": "plan",
        "limits.max_steps": 1,
        "limits.reply_tokens": 256,
        "server.binary": binary,
    }
    return load_settings(None, {}, flags)


def somebody_else_asks(tmp_path: Path) -> None:
    """A conversation that is not ours takes the only slot."""
    [record] = list_records(tmp_path / "state" / "run")
    endpoint = Endpoint(
        base_url=f"http://127.0.0.1:{record.port}", api_key=record.api_key, profile="mine", context_tokens=0
    )
    words = " ".join(f"word{number}" for number in range(150))
    body = {"messages": [{"role": "user", "content": words}], "max_tokens": 1}
    ask(endpoint, "/v1/chat/completions", body)


async def losses(talk: Talk, tmp_path: Path, turns: int = TURNS) -> list[str]:
    """The notices of a conversation in which somebody else asks before each turn, until there is one."""
    for number in range(turns):
        await talk.turn(f"Say the number {number}, and nothing else.")
        told = [one.text for one in talk.of("notice") if "were read again" in one.text]
        if told:
            return told
        await in_background(lambda: somebody_else_asks(tmp_path))
    return []


@pytest.mark.parametrize("engine", ["embedded", "llama-server"])
async def test_slot_that_somebody_else_took_is_told_with_the_setting_that_would_have_helped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
):
    loaded = settings(tmp_path, monkeypatch, engine, cache_ram=0)
    (work := tmp_path / "work").mkdir()
    async with watched(await open_session(work, loaded=loaded)) as talk:
        [notice] = await losses(talk, tmp_path)
    assert "tokens that the server had were read again" in notice
    assert "another conversation had the slot" in notice
    assert "--cache-ram 0" in notice


async def test_prompt_that_the_server_keeps_aside_is_no_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    loaded = settings(tmp_path, monkeypatch, "llama-server", cache_ram=128)
    (work := tmp_path / "work").mkdir()
    async with watched(await open_session(work, loaded=loaded)) as talk:
        assert await losses(talk, tmp_path, turns=4) == []
        steps = talk.of("step_finished")
    assert any(step.stats.cached_tokens > step.stats.prompt_tokens for step in steps[1:])


def answered(up: llama_server.Up, **body: Any) -> tuple[Mapping[str, str], StepFinished]:
    """The reply to a chat, and the event with the server's figures."""
    status, answer = request_json(up.port, "POST", "/v1/chat/completions", "", body, timeout=120)
    assert status == 200, answer
    stats = from_timings(answer["timings"])
    return answer["choices"][0]["message"], StepFinished(step=1, stop_reason="stop", stats=stats)


def test_template_that_drops_earlier_thoughts_is_named(tmp_path: Path):
    template = ROOT / "tests/cases/templates/forgets-thoughts.jinja"
    words = ("-m", str(write_target(tmp_path / "tiny.gguf")), "-c", "2048", "-np", "1")
    asked, more = ({"role": "user", "content": text} for text in ("Say words.", "And now?"))
    reply = json.dumps("<think>\nLet me see.\n</think>\n\n" + " ".join(["word"] * 50))
    watch = ReuseWatch()
    with llama_server.serving((*words, "--chat-template-file", str(template)), tmp_path) as up:
        said, first = answered(up, messages=[asked], grammar=f"root ::= {reply}", max_tokens=500)
        _, second = answered(up, messages=[asked, said, more], max_tokens=1)
    assert said["reasoning_content"].strip() == "Let me see."
    thought = AssistantReplied(text=said["content"], reasoning=said["reasoning_content"])
    events = (UserMessageAdded(text="Say words."), first, thought, UserMessageAdded(text="And now?"), second)
    *before, notice = map(watch.observe, events)
    assert before == [None] * 4
    assert notice is not None
    assert "leaves out its earlier thoughts" in notice.text


def test_window_that_cannot_be_cut_and_has_no_checkpoint_is_named(tmp_path: Path):
    """The reply comes back cut into other tokens, so the server has to go back to where it began."""
    model = write_target(tmp_path / "windowed.gguf", architecture="gemma3")
    profile = Profile.model_validate(
        {"name": "mine", "engine": "llama-server", "target": {"file": str(model)}}
    )
    loaded = load_settings(None, {}, {})
    server = Endpoint(base_url="", api_key="", profile="mine", context_tokens=4096, fingerprint="ours")
    watch = ReuseWatch(look=looking_at(Serving(profile, loaded, "ours"), server))
    asked, reply = {"role": "user", "content": "Say x. " * 120}, "x" * 700
    first = {"messages": [asked], "grammar": f'root ::= "{reply}"', "logit_bias": [["x", False]]}
    second = [asked, {"role": "assistant", "content": reply}, {"role": "user", "content": "Again."}]
    words = (
        "-m",
        str(model),
        "-c",
        "4096",
        "-np",
        "1",
        "-b",
        "64",
        "--ctx-checkpoints",
        "0",
        "--cache-ram",
        "0",
    )
    with llama_server.serving(words, tmp_path) as up:
        _, before = answered(up, **first, max_tokens=800)
        _, after = answered(up, messages=second, max_tokens=1)
    assert watch.observe(before) is None
    notice = watch.observe(after)
    assert notice is not None, after
    assert "the server had no checkpoint nearby" in notice.text

"""What a person is told where a real server has lost the prompt of a conversation, and where it has not."""

import os
from pathlib import Path

import pytest

from agent.app.background import in_background
from agent.app.interactive import open_session
from agent.config.load import LoadedSettings, load_settings
from agent.resources import data_folder
from agent.server.download import obtain
from agent.server.profile_files import load_profile
from agent.server.record import Endpoint, list_records
from tests.app.talk import Talk, watched
from tests.real.llama_server import real_binary
from tests.real.rig import ROOT, ask

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


async def losses(talk: Talk, tmp_path: Path) -> list[str]:
    """The notices of a conversation in which somebody else asks before each turn, until there is one."""
    for number in range(TURNS):
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
        assert await losses(talk, tmp_path) == []
        steps = talk.of("step_finished")
    assert any(step.stats.cached_tokens > step.stats.prompt_tokens for step in steps[1:])

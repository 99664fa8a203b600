"""Whether the doctor finds that a profile has the card of another model."""

from pathlib import Path

import pytest

from agent.app.doctor.carded import card, served_card
from agent.app.doctor.finding import Finding, Outside, Patient
from agent.config.load import load_settings
from agent.server.hardware import Hardware
from agent.server.model_file import ModelFile
from agent.server.profile import Profile
from tests.server.gguf_models import write_gguf


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    environment = {
        f"AGENT_{kind}_HOME": str(tmp_path / kind.lower()) for kind in ("CONFIG", "STATE", "DATA", "CACHE")
    }
    return Patient(
        outside=Outside(environment=environment),
        loaded=load_settings(None, environment, {}),
        profile=None,
        hardware=Hardware.__new__(Hardware),
    )


def with_file(patient: Patient, path: Path, chosen: str) -> list[Finding]:
    from dataclasses import replace

    profile = Profile(name="mine", engine="llama-server", target=ModelFile(file=str(path)), card=chosen)
    return list(card(replace(patient, profile=profile)))


@pytest.mark.parametrize(
    ("file", "architecture", "chosen", "level", "words"),
    [
        ("Qwen3-8B.gguf", "qwen3", "qwen3", "ok", "Qwen3, card qwen3"),
        ("mine.gguf", "qwen3", "qwen3", "ok", "Qwen3, card qwen3"),
        ("mine.gguf", "qwen3", "auto", "ok", "card qwen3"),
        ("mine.gguf", "gemma4", "qwen3", "warning", "known as Gemma 4"),
        ("mine.gguf", "llama", "auto", "warning", "nothing is known"),
        ("mine.gguf", "llama", "devstral", "ok", "Devstral"),
        ("mine.gguf", "qwen3", "none", "ok", "no model card"),
    ],
)
def test_card_is_compared_with_the_file(
    patient: Patient, tmp_path: Path, file: str, architecture: str, chosen: str, level: str, words: str
):
    path = write_gguf(tmp_path / file, architecture, {}, [])
    (found,) = with_file(patient, path, chosen)
    assert (found.level, bool(found.remedy)) == (level, level != "ok")
    assert words in found.message


def test_file_that_is_not_there_is_known_by_its_name(patient: Patient, tmp_path: Path):
    (found,) = with_file(patient, tmp_path / "gpt-oss-20b.gguf", "qwen3")
    assert (found.level, found.remedy) == (
        "warning", 'set card = "gpt-oss" in the profile, or card = "auto"'
    )  # fmt: skip


def test_server_elsewhere_is_known_by_what_it_calls_its_model(patient: Patient):
    remote = Profile(name="remote", engine="remote", url="http://127.0.0.1:1")
    (known,) = served_card(patient, remote, ("local", "Devstral-Small-2507.gguf"))
    (unknown,) = served_card(patient, remote, ("something",))
    assert (known.level, unknown.level) == ("ok", "warning")
    assert served_card(patient, remote, ()) == []

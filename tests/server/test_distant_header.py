"""Headers of model files that are not here, from a stub of the hub on the loopback interface."""

import hashlib
from pathlib import Path

import pytest

from agent.core.errors import ModelFileError
from agent.server.distant_header import headers_from_hub
from agent.server.fit_report import fit_report
from agent.server.gguf import read_model
from agent.server.hardware import detect_hardware
from agent.server.profile import Profile
from tests.fakes.fake_hub import FakeHub, running_hub
from tests.real.tiny_pair import write_target
from tests.server.test_hub_fetch import means

HEADER = 64 * 1024


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_target(tmp_path / "whole.gguf")


def profile(**of_target: object) -> Profile:
    target = {"file": "far.gguf", "sources": [{"kind": "hub", "repo": "maker/model"}], **of_target}
    return Profile.model_validate({"name": "far", "engine": "llama-server", "context": 256, "target": target})


def hub_of(model: Path) -> FakeHub:
    content = model.read_bytes()
    return FakeHub(content, tag=hashlib.sha256(content).hexdigest())


def test_only_the_beginning_is_fetched_and_it_is_read_like_the_whole_file(model: Path, tmp_path: Path):
    with running_hub(hub_of(model)) as hub:
        path = headers_from_hub(profile(), tmp_path / "headers", means(hub.url), HEADER)["far.gguf"]
    assert hub.requests[-1] == ("/maker/model/resolve/c0ffee/far.gguf", f"bytes=0-{HEADER - 1}")
    assert path.stat().st_size == model.stat().st_size
    assert path.read_bytes()[HEADER:].strip(b"\0") == b""
    assert read_model(path).tensors == read_model(model).tensors


def test_a_header_that_is_here_is_not_fetched_again(model: Path, tmp_path: Path):
    with running_hub(hub_of(model)) as hub:
        for _ in range(2):
            headers_from_hub(profile(), tmp_path / "headers", means(hub.url), HEADER)
    assert len([path for path, _ in hub.requests if not path.startswith("HEAD")]) == 1


def test_a_fit_from_the_header_is_that_of_the_whole_file(model: Path, tmp_path: Path):
    hardware = detect_hardware(tmp_path)
    with running_hub(hub_of(model)) as hub:
        headers = headers_from_hub(profile(), tmp_path / "headers", means(hub.url), HEADER)
    far = fit_report(profile(), tmp_path, hardware, headers=headers)
    here = fit_report(profile(file=str(model)), tmp_path, hardware)
    assert far.need == here.need


def test_a_file_without_a_source_on_the_hub_is_refused(tmp_path: Path):
    with pytest.raises(ModelFileError, match=r"far\.gguf has no source on Hugging Face"):
        headers_from_hub(profile(sources=[]), tmp_path / "headers")


def test_a_hub_that_refuses_is_named_with_its_reason(model: Path, tmp_path: Path):
    hub = hub_of(model)
    hub.status = 404
    with running_hub(hub), pytest.raises(ModelFileError, match=r"Hugging Face maker/model: .*404"):
        headers_from_hub(profile(), tmp_path / "headers", means(hub.url), HEADER)
    assert list((tmp_path / "headers").iterdir()) == []


def test_a_file_that_is_here_needs_no_source(model: Path, tmp_path: Path):
    mine = profile(sources=[], file=str(model))
    assert headers_from_hub(mine, tmp_path / "headers", models_folder=tmp_path / "models") == {}

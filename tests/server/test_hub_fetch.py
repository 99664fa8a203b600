"""The hub child against a stub of the hub on the loopback interface."""

import hashlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.core.errors import ModelFileError
from agent.server.download import obtain
from agent.server.model_file import ModelFile
from agent.server.sources import Means
from tests.fakes.fake_hub import FakeHub, running_hub

CONTENT = bytes(range(256)) * 2000
FILE = ModelFile.model_validate(
    {
        "file": "m.gguf",
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "bytes": len(CONTENT),
        "sources": [{"kind": "hub", "repo": "maker/model", "revision": "v1"}],
    }
)


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with running_hub(FakeHub(CONTENT)) as hub:
        yield hub


def means(url: str) -> Means:
    blocked = ("HF_", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(blocked)}
    return Means(environment={**kept, "HF_ENDPOINT": url, "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"})


def test_file_comes_from_the_hub_that_the_environment_names(hub: FakeHub, tmp_path: Path):
    path = obtain(FILE, tmp_path, means=means(hub.url))
    assert path.read_bytes() == CONTENT
    assert hub.requests == [("/maker/model/resolve/v1/m.gguf", None)]


def test_half_download_is_resumed_where_it_stopped(hub: FakeHub, tmp_path: Path):
    (tmp_path / "m.gguf.part").write_bytes(CONTENT[:1234])
    assert obtain(FILE, tmp_path, means=means(hub.url)).read_bytes() == CONTENT
    assert [wanted for _, wanted in hub.requests] == ["bytes=1234-"]


def test_connection_that_breaks_in_the_middle_is_taken_up_again(hub: FakeHub, tmp_path: Path):
    hub.cut_after = 100_000
    assert obtain(FILE, tmp_path, means=means(hub.url)).read_bytes() == CONTENT
    assert [wanted for _, wanted in hub.requests] == [None, "bytes=100000-"]


@pytest.mark.parametrize(
    ("status", "reason"), [(404, "no such file there"), (401, "HF_TOKEN"), (500, "HTTP 500")]
)
def test_refusal_of_the_hub_is_the_reason(status: int, reason: str, hub: FakeHub, tmp_path: Path):
    hub.status = status
    with pytest.raises(ModelFileError, match=reason):
        obtain(FILE, tmp_path, means=means(hub.url))
    assert len(hub.requests) == 1


def test_hub_that_cannot_be_reached_is_asked_once(tmp_path: Path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ModelFileError, match=r"Hugging Face \(maker/model\): cannot be reached"):
            obtain(FILE, tmp_path, means=means(url))


def test_wrong_content_is_not_kept(hub: FakeHub, tmp_path: Path):
    hub.content = CONTENT[::-1]
    with pytest.raises(ModelFileError, match="wrong sha256"):
        obtain(FILE, tmp_path, means=means(hub.url))
    assert not (tmp_path / "m.gguf").exists()
    assert not (tmp_path / "m.gguf.part").exists()


UNCHECKED = ModelFile.model_validate(
    {"file": "m.gguf", "sources": [{"kind": "hub", "repo": "maker/model", "file": "big/m-q4.gguf"}]}
)


def test_file_without_a_checksum_is_checked_by_the_hubs_own(hub: FakeHub, tmp_path: Path):
    hub.tag = hashlib.sha256(CONTENT).hexdigest()
    assert obtain(UNCHECKED, tmp_path, means=means(hub.url)).read_bytes() == CONTENT
    # What was described is what is fetched, whatever the branch holds by then.
    assert [path for path, _ in hub.requests] == [
        "HEAD /maker/model/resolve/main/big/m-q4.gguf",
        "/maker/model/resolve/c0ffee/big/m-q4.gguf",
    ]


def test_content_that_is_not_what_the_hub_described_is_refused(hub: FakeHub, tmp_path: Path):
    hub.tag = "ab" * 32
    with pytest.raises(ModelFileError, match="wrong sha256"):
        obtain(UNCHECKED, tmp_path, means=means(hub.url))
    assert not (tmp_path / "m.gguf").exists()


def test_file_that_nobody_has_a_checksum_of_is_not_fetched(hub: FakeHub, tmp_path: Path):
    with pytest.raises(ModelFileError, match="names no sha256"):
        obtain(UNCHECKED, tmp_path, means=means(hub.url))
    assert [path for path, _ in hub.requests] == ["HEAD /maker/model/resolve/main/big/m-q4.gguf"]


@pytest.mark.parametrize(("status", "reason"), [(401, "HF_TOKEN"), (404, "no such file")])
def test_refusal_to_describe_a_file_is_told(status: int, reason: str, hub: FakeHub, tmp_path: Path):
    hub.status = status
    with pytest.raises(ModelFileError, match=reason):
        obtain(UNCHECKED, tmp_path, means=means(hub.url))

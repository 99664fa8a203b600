"""What makes a running server fit another start."""

from pathlib import Path

import pytest

from agent.server.fingerprint import fingerprint
from agent.server.profile import Profile

SHA = "ab" * 32


def profile(**changes: object) -> Profile:
    return Profile.model_validate({"name": "p", "target": {"file": "m.gguf", "sha256": SHA}, **changes})


def test_same_profile_gives_the_same_text(tmp_path: Path):
    assert fingerprint(profile(), tmp_path) == fingerprint(profile(), tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"context": 4096},
        {"slots": 2},
        {"threads": 3},
        {"kv_type_k": "q8_0"},
        {"speculation": {"kind": "ngram-mod"}},
        {"speculation": {"kind": ["ngram-mod", "ngram-cache"]}},
        {"load_mode": "mlock"},
        {"template_arguments": {"a": 1}},
        {"target": {"file": "m.gguf", "sha256": "cd" * 32}},
    ],
)
def test_what_the_server_is_started_with_counts(change: dict, tmp_path: Path):
    assert fingerprint(profile(**change), tmp_path) != fingerprint(profile(), tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "q"},
        {"description": "other"},
        {"sampling": {"temperature": 1.0}},
        {"tools": {"protocol": "native"}},
        {"model_card": {"max_reply_tokens": 5}},
        {"target": {"file": "renamed.gguf", "sha256": SHA}},
        {"draft": {"file": "unused.gguf"}},
    ],
)
def test_what_only_requests_carry_does_not_count(change: dict, tmp_path: Path):
    assert fingerprint(profile(**change), tmp_path) == fingerprint(profile(), tmp_path)


def test_setting_for_threads_wins_over_the_profile(tmp_path: Path):
    assert fingerprint(profile(threads=2), tmp_path, 4) == fingerprint(profile(threads=4), tmp_path)


def test_file_without_a_checksum_counts_by_its_content_on_disk(tmp_path: Path):
    unknown = profile(target={"file": "m.gguf"})
    absent = fingerprint(unknown, tmp_path)
    (tmp_path / "m.gguf").write_bytes(b"one")
    small = fingerprint(unknown, tmp_path)
    (tmp_path / "m.gguf").write_bytes(b"other")
    assert len({absent, small, fingerprint(unknown, tmp_path)}) == 3

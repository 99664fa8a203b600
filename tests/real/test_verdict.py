"""The real llama-server, healthy but wrong, is seen through."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.server.profile import Profile
from agent.server.verdict import Finding, findings_after_start
from tests.real.llama_server import serving, write_files

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

DRAFT_TABLE = {"file": "draft.gguf"}
SMALL = ("-c", "512", "-np", "1")
DFLASH = ("-md", "{draft}", "--spec-type", "draft-dflash")
CASES: list[tuple[str, tuple[str, ...], dict[str, Any], list[tuple[str, str]]]] = [
    ("a good pair", (*SMALL, *DFLASH), {"speculation": {"kind": "dflash"}}, []),
    (
        "no draft file",
        (*SMALL, "--spec-type", "draft-dflash"),
        {"speculation": {"kind": "dflash"}},
        [("error", "speculation-off")],
    ),
    (
        "a plain draft without a kind",
        (*SMALL, "-md", "{target}"),
        {"speculation": {"kind": "draft"}},
        [("error", "speculation-off")],
    ),
    (
        "another vocabulary",
        (*SMALL, "-md", "{foreign}", "--spec-type", "draft-simple"),
        {"speculation": {"kind": "draft"}},
        [("error", "speculation-vocabulary")],
    ),
    (
        "drafts longer than a block",
        (*SMALL, *DFLASH, "--spec-draft-n-max", "15"),
        {"speculation": {"kind": "dflash", "n_max": 15}},
        [("warning", "draft-length")],
    ),
    (
        "drafting from the context",
        (*SMALL, "--spec-type", "ngram-mod"),
        {"speculation": {"kind": "ngram-mod"}},
        [],
    ),
    (
        "drafting that nobody asked for",
        (*SMALL, "--spec-type", "ngram-mod"),
        {},
        [("warning", "speculation-unasked")],
    ),
    ("more context than trained", ("-c", "8192", "-np", "1"), {"context": 8192}, [("warning", "context")]),
    (
        "slots that share the context",
        ("-c", "1024", "-np", "2"),
        {"context": 1024, "slots": 2},
        [("warning", "context")],
    ),
    ("other slots", ("-c", "1024", "-np", "2", "--kv-unified"), {"context": 1024}, [("warning", "slots")]),
    (
        "acceptance that is made up",
        (*SMALL, *DFLASH, "--spec-synth-len", "3"),
        {"speculation": {"kind": "dflash"}},
        [("warning", "synthetic")],
    ),
]


def profile_with(changes: dict[str, Any]) -> Profile:
    table = {"name": "p", "engine": "llama-server", "context": 512, "target": {"file": "target.gguf"}}
    return Profile.model_validate({**table, "draft": DRAFT_TABLE, **changes})


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_files(tmp_path_factory.mktemp("models"))


def findings(words: Sequence[str], changes: dict[str, Any], folder: Path) -> list[Finding]:
    profile = profile_with(changes)
    with serving(words, folder) as server:
        drafted = None
        if profile.uses_draft_model:
            drafted = server.complete(ignore_eos=True)["timings"].get("draft_n", 0)
        return findings_after_start(profile, server.log, server.get("/props"), server.get("/slots"), drafted)


@pytest.mark.parametrize(
    ("words", "changes", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_only_what_is_wrong_with_a_healthy_server_is_found(
    words: tuple[str, ...],
    changes: dict[str, Any],
    expected: list[tuple[str, str]],
    files: dict[str, str],
    tmp_path: Path,
):
    given = ["-m", files["target"], *(str(files.get(word.strip("{}"), word)) for word in words)]
    found = findings(given, changes, tmp_path)
    assert [(one.level, one.code) for one in found] == expected


def test_server_without_a_model_is_a_router(tmp_path: Path):
    (found,) = findings(["-m", ""], {}, tmp_path)
    assert (found.level, found.code) == ("error", "router")

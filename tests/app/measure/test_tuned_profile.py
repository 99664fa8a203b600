"""The profile that tuning writes: only what changed, and read as what was measured."""

from pathlib import Path
from typing import Any

import pytest

from agent.app.measure.tuned_profile import MARK, target_file, tuned_text, write_profile
from agent.app.measure.tuning_space import KINDS, Space, merged
from agent.core.errors import AgentError, UsageError
from agent.server.profile_files import load_profile

BASE = 'engine = "llama-server"\n[target]\nfile = "t.gguf"\n[draft]\nfile = "d.gguf"\n'
BASES = {
    "plain": BASE,
    "dflash": BASE + '[speculation]\nkind = "dflash"\nn_max = 7\ncross_context = 512\n',
    "both": BASE + '[speculation]\nkind = ["dflash", "ngram-mod"]\nn_max = 7\nngram_n_max = 32\n',
    "also": BASE + '[speculation]\nkind = "dflash"\nalso = ["ngram-mod"]\nn_match = 12\n',
    "ngram": BASE + '[speculation]\nkind = "ngram-mod"\nn_min = 48\nn_max = 64\n',
    "fitting": "batch = 64\nubatch = 64\nbatch_seconds = 0.5\n"
    f'{BASE}[speculation]\nkind = "dflash"\nn_max = 7\n',
}
CHANGES: list[dict[str, Any]] = [
    {"threads": 3},
    {"ubatch": 4096, "batch": 4096},
    {KINDS: ()},
    {KINDS: ("ngram-simple",), "speculation.size_m": 16},
    {KINDS: ("dflash",), "speculation.n_max": 4, "speculation.p_min": 0.5},
    {KINDS: ("dflash", "ngram-mod")},
    {KINDS: ("ngram-mod",), "speculation.n_max": 32, "speculation.n_min": 16},
]


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENT_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "profiles"
    folder.mkdir()
    for name, text in BASES.items():
        (folder / f"{name}.toml").write_text(text, "utf-8")
    return folder


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_what_is_written_is_read_as_what_was_measured(profiles: Path, base: str, changes: dict[str, Any]):
    measured = Space(load_profile(base, [profiles])).profile(merged((), changes))
    text = tuned_text(measured, base, merged((), changes), ["measured"])
    write_profile(profiles / "tuned.toml", text, measured)
    found = load_profile("tuned", [profiles])
    assert found.speculation == measured.speculation
    assert found.model_copy(update={"name": base, "description": ""}) == measured


def test_only_changed_keys_are_written(profiles: Path):
    changes = merged((), {"speculation.n_max": 4, "threads": 2})
    measured = Space(load_profile("dflash", [profiles])).profile(changes)
    lines = tuned_text(measured, "dflash", changes, []).split("\n")
    assert [line for line in lines if line] == [
        'extends = "dflash"',
        'description = "dflash, tuned for this machine by measured runs"',
        "threads = 2",
        "[speculation]",
        "n_max = 4",
    ]


@pytest.mark.parametrize(
    ("changes", "seconds"), [({"threads": 3}, 0.5), ({"speculation.n_max": 15}, 0), ({"ubatch": 128}, 0)]
)
def test_draft_lengths_and_batches_that_won_hold_as_they_were_measured(
    profiles: Path, changes: dict[str, Any], seconds: float
):
    measured = Space(load_profile("fitting", [profiles])).profile(merged((), changes))
    text = tuned_text(measured, "fitting", merged((), changes), [])
    write_profile(profiles / "tuned.toml", text, measured)
    assert load_profile("tuned", [profiles]).batch_seconds == seconds


def test_evidence_cannot_become_a_setting(profiles: Path):
    changes = merged((), {"threads": 2})
    measured = Space(load_profile("plain", [profiles])).profile(changes)
    text = tuned_text(measured, "plain", changes, ["command: agent 'a\nthreads = 9\x07'"])
    write_profile(profiles / "tuned.toml", text, measured)
    assert load_profile("tuned", [profiles]).threads == 2


def test_a_profile_that_would_be_read_as_something_else_is_not_written(profiles: Path):
    measured = Space(load_profile("plain", [profiles])).profile((("threads", 2),))
    with pytest.raises(AgentError, match="would not be read"):
        write_profile(profiles / "tuned.toml", 'extends = "plain"\nthreads = 3\n', measured)
    assert not (profiles / "tuned.toml").exists()


def test_tuning_again_may_replace_its_own_file_and_nobody_elses(profiles: Path):
    (profiles / "a.toml").write_text(f'{MARK}.\nextends = "plain"\n', "utf-8")
    assert target_file("a", "plain") == profiles / "a.toml"
    (profiles / "b.toml").write_text('extends = "plain"\n', "utf-8")
    with pytest.raises(UsageError, match="not written by"):
        target_file("b", "plain")


def test_a_profile_is_never_replaced_by_what_extends_it(profiles: Path):
    (profiles / "a.toml").write_text(f'{MARK}.\nextends = "plain"\n', "utf-8")
    with pytest.raises(UsageError, match="would be tuned"):
        target_file("a", "a")

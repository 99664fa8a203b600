"""`agent tune` with the fake llama-server: it writes at 40 tok/s, and at 130 when it drafts."""

import io
import json
import os
import signal
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.app.measure.tuning import TuneRequest, run_tune
from agent.cli.main import run
from agent.core.errors import UsageError
from agent.server.profile_files import load_profile
from tests.e2e.conftest import is_running
from tests.fakes.llama_binary import FakeBinary, make_llama_binary, write_model

pytestmark = pytest.mark.timeout(300)

PROFILE = """\
engine = "llama-server"
context = 4096
threads = 1
[target]
file = "target.gguf"
[tools]
protocol = "native"
"""
DRAFTING = '[speculation]\nkind = "ngram-mod"\nn_match = 12\n'
KEY = "very-secret"
SHORT = ("--limit", "1", "--osl", "12", "--minutes", "30")


@dataclass(frozen=True, slots=True)
class Tuned:
    """What one whole search left behind."""

    place: Path
    binary: FakeBinary
    code: int
    table: dict[str, Any]
    shown: str

    @property
    def text(self) -> str:
        return written(self.place).read_text("utf-8")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return furnished(tmp_path, monkeypatch)


@pytest.fixture
def binary(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBinary]:
    made = make_llama_binary(place / "bin", any_model=True)
    monkeypatch.setenv("AGENT_SERVER_BINARY", str(made.path))
    yield made
    end(made)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tuned]:
    """A search that finds something. It takes a dozen starts, so it is made once."""
    folder = tmp_path_factory.mktemp("tuned")
    out, shown = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        furnished(folder, patch)
        key = folder / "key"
        key.write_text(KEY, "utf-8")
        write_profile(folder, "mine", PROFILE.replace("threads", f'api_key_file = "{key}"\nthreads'))
        made = make_llama_binary(folder / "bin", any_model=True)
        patch.setenv("AGENT_SERVER_BINARY", str(made.path))
        with redirect_stdout(out), redirect_stderr(shown):
            code = run(["tune", "mine", "--only", "kinds", *SHORT, "--json"])
        key.unlink()
    yield Tuned(folder, made, code, json.loads(out.getvalue()), shown.getvalue())
    end(made)


def furnished(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Folders of their own with the profile `mine` and its model."""
    for kind in ("CONFIG", "STATE", "DATA", "CACHE"):
        patch.setenv(f"AGENT_{kind}_HOME", str(folder / kind.lower()))
    patch.delenv("AGENT_MODELS_FOLDER", raising=False)  # of whoever runs the tests
    patch.chdir(folder)
    (folder / "data" / "models").mkdir(parents=True)
    write_model(folder / "data" / "models" / "target.gguf")
    write_profile(folder, "mine", PROFILE)
    return folder


def end(made: FakeBinary) -> None:
    for start in made.starts():
        with suppress(ProcessLookupError):
            os.kill(start["pid"], signal.SIGKILL)


def write_profile(place: Path, name: str, text: str) -> Path:
    path = place / "config" / "profiles" / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def written(place: Path, name: str = "mine-tuned") -> Path:
    return place / "config" / "profiles" / f"{name}.toml"


def are_gone(binary: FakeBinary) -> bool:
    return not [start for start in binary.starts() if is_running(start["pid"])]


def test_what_is_faster_becomes_a_profile_that_extends_the_base(tuned: Tuned):
    assert tuned.code == 0
    found = load_profile("mine-tuned", [written(tuned.place).parent])
    assert found.speculation.kinds in (("ngram-mod",), ("ngram-simple",), ("ngram-map-k",))
    assert (found.context, found.threads) == (4096, 1)
    assert 'extends = "mine"' in tuned.text
    assert "context" not in tuned.text.partition("extends =")[2]
    assert are_gone(tuned.binary)


def test_evidence_is_in_the_profile(tuned: Tuned):
    comments = [line for line in tuned.text.splitlines() if line.startswith("#")]
    told = "\n".join(comments)
    assert comments[0].startswith("# Written by `agent tune`")
    for fact in ("date: 2", "command: agent ", "processor: ", "suite: coding", "tokens of each reply: 12"):
        assert f"# {fact}" in told
    assert "# mine: 18.75 (18.75-18.75) tok/s" in told
    assert "% of drafts accepted; 4 runs, 4 requests, 48 % faster" in told
    assert "#   ngram-map-k: 27.76 tok/s in 1 run" in told


def test_json_has_every_run_and_the_table_goes_to_the_other_stream(tuned: Tuned):
    assert (tuned.table["confirmed"], tuned.table["written"]) == (True, str(written(tuned.place)))
    assert tuned.table["gain"] == pytest.approx(1.48, abs=0.01)
    assert [visit["purpose"] for visit in tuned.table["visits"]][:3] == ["base", "control", "screen"]
    assert "candidate" in tuned.shown
    assert "is 48 % faster than the base" in tuned.shown
    [kept] = (tuned.place / "state" / "tune").iterdir()
    assert json.loads(kept.read_text("utf-8"))["visits"] == tuned.table["visits"]


def test_each_run_has_a_server_of_its_own_and_other_seeds(tuned: Tuned):
    assert len(tuned.binary.starts()) == len(tuned.table["visits"])
    bodies = [one["body"] for one in tuned.binary.requests() if "seed" in one["body"]]
    assert len({body["seed"] for body in bodies}) > 3
    assert all(body["max_tokens"] == 12 for body in bodies)


def test_key_of_a_server_is_written_nowhere(tuned: Tuned):
    texts = [path.read_text("utf-8", "replace") for path in tuned.place.rglob("*") if path.is_file()]
    assert len(texts) > 5
    assert not [text for text in [*texts, tuned.shown] if KEY in text]


def test_nothing_is_written_where_nothing_is_faster(
    place: Path, binary: FakeBinary, capsys: pytest.CaptureFixture[str]
):
    binary.tell(any_model=True, drafting_speed=40)
    assert run(["tune", "mine", "--only", "kinds", *SHORT]) == 0
    assert "Nothing that was tried is faster" in capsys.readouterr().out
    assert not written(place).exists()


@pytest.mark.slow
def test_speculation_that_hurts_is_switched_off(place: Path, binary: FakeBinary):
    binary.tell(any_model=True, drafting_speed=10)
    write_profile(place, "mine", PROFILE + DRAFTING)
    assert run(["tune", "mine", "--only", "kinds", *SHORT]) == 0
    tuned = load_profile("mine-tuned", [written(place).parent])
    assert tuned.speculation.kinds == ()
    assert tuned.speculation.n_match is None


def test_candidates_that_do_not_start_are_recorded_and_passed_over(
    place: Path, binary: FakeBinary, capsys: pytest.CaptureFixture[str]
):
    binary.tell(any_model=True, die_loading="failed to allocate buffer", only_when_drafting=True)
    assert run(["tune", "mine", "--only", "kinds", *SHORT, "--json"]) == 0
    table = json.loads(capsys.readouterr().out)
    failed = [visit for visit in table["visits"] if visit["failure"]]
    assert len(failed) == 3
    assert table["written"] is None


def test_a_base_that_does_not_start_is_an_error(
    place: Path, binary: FakeBinary, capsys: pytest.CaptureFixture[str]
):
    binary.tell(any_model=True, die_loading="it broke")
    assert run(["tune", "mine", *SHORT]) == 5
    assert "agent: " in capsys.readouterr().err
    assert not written(place).exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--only", "n_max,speed"), "there is no 'speed'"),
        (("--save-as", "../x"), "no name for a profile"),
        (("--save-as", "mine"), "is the profile that would be tuned"),
        (("--save-as", "other"), "was not written by `agent tune`"),
        (("--minutes", "0"), "no number of minutes"),
        (("--minutes", "nan"), "no number of minutes"),
        (("--osl", "2"), "no whole number from 8"),
    ],
)
def test_mistakes_are_told_before_anything_is_started(
    place: Path,
    binary: FakeBinary,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    complaint: str,
):
    write_profile(place, "other", PROFILE)
    assert run(["tune", "mine", *arguments]) == 2
    assert complaint in capsys.readouterr().err
    assert binary.starts() == []


def test_a_server_that_runs_elsewhere_cannot_be_tuned(place: Path, binary: FakeBinary):
    write_profile(place, "far", 'engine = "remote"\nurl = "http://127.0.0.1:9"\n')
    with pytest.raises(UsageError, match="runs elsewhere"):
        run_tune(TuneRequest(profile="far"), lambda text, essence: None, lambda text: None)


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "is_written"), [(True, True), (False, False)])
def test_an_interruption_keeps_what_was_measured_and_offers_the_best_so_far(
    place: Path, binary: FakeBinary, answer: bool, is_written: bool
):
    questions: list[str] = []

    def say(line: str) -> None:
        if "last comparison" in line:
            signal.raise_signal(signal.SIGINT)

    def offer(question: str) -> bool:
        questions.append(question)
        return answer

    request = TuneRequest(profile="mine", only=("kinds",), limit=1, reply_tokens=12)
    assert run_tune(request, lambda text, essence: None, say, offer) == 130
    assert len(questions) == 1
    assert "(not confirmed)" in questions[0]
    assert written(place).exists() == is_written
    assert len(list((place / "state" / "tune").iterdir())) == 1
    assert are_gone(binary)

"""`agent bench` against servers that answer from a script."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.app.measure.benching import BenchRequest, run_bench
from agent.app.servers.serving import Serving, choose
from agent.bench.baseline import baseline_for
from agent.cli.main import run
from agent.config.load import LoadedSettings
from agent.core.errors import UsageError
from tests.conftest import StartServer
from tests.fakes.script import Step

KEY = "very-secret"
ALWAYS = Step(text="class Task: pass", drafted=6, accepted=3, times=0)
SHORT = ("--runs", "2", "--limit", "1")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of its own; nothing of the machine's settings counts."""
    for kind in ("CONFIG", "STATE", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_{kind}_HOME", str(tmp_path / kind.lower()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def report_folder(place: Path) -> Path:
    (folder,) = (place / "state" / "bench").iterdir()
    return folder


def test_servers_that_run_elsewhere_are_compared(
    place: Path, scripted_server: StartServer, capsys: pytest.CaptureFixture[str]
):
    slow, fast = scripted_server("warm", Step(text="class Task: pass", times=0)), scripted_server(ALWAYS)
    assert run(["bench", "--url", slow.url, "--url", fast.url, *SHORT, "--greedy"]) == 0
    out, err = capsys.readouterr()
    assert f"127.0.0.1:{fast.port}" in out
    assert "1.00x (1.00-1.00)" in out
    assert "wrote the same, character for character" in out
    assert "report: " in err
    folder = report_folder(place)
    assert len(list((folder / "raw").iterdir())) == 4
    assert (folder / "report.html").read_text("utf-8").startswith("<!doctype html>")
    assert [chat.body["temperature"] for chat in fast.chats] == [0, 0, 0]


def test_template_of_a_server_elsewhere_hears_in_each_request_what_the_profile_says(
    place: Path, scripted_server: StartServer
):
    server = scripted_server(ALWAYS)
    profiles = place / "config" / "profiles"
    profiles.mkdir(parents=True)
    text = (
        f'engine = "remote"\nurl = "{server.url}"\nreasoning = "off"\n[template_arguments]\nstyle = "brief"\n'
    )
    (profiles / "box.toml").write_text(text, "utf-8")
    assert run(["bench", "box", *SHORT]) == 0
    assert run(["bench", "box", *SHORT, "--extra-inputs", '{"chat_template_kwargs": {}}']) == 0
    told = [chat.body["chat_template_kwargs"] for chat in server.chats]
    assert told[0] == {"style": "brief", "enable_thinking": False}
    assert told == [told[0]] * (len(told) // 2) + [{}] * (len(told) // 2)


def test_json_on_stdout_is_alone_there(scripted_server: StartServer, capsys: pytest.CaptureFixture[str]):
    assert run(["bench", "--url", scripted_server(ALWAYS).url, *SHORT, "--json", "-"]) == 0
    out, err = capsys.readouterr()
    table = json.loads(out)
    assert [row["category"] for row in table["summary"]] == ["coding", "overall"]
    assert table["summary"][0]["accept_rate"] == 0.5
    assert "accept_rate" in err


def test_files_are_written_where_they_are_wanted(place: Path, scripted_server: StartServer):
    files = ("--html", "mine.html", "--output", "mine.json")
    assert run(["bench", "--url", scripted_server(ALWAYS).url, *SHORT, *files]) == 0
    assert json.loads((place / "mine.json").read_text("utf-8"))["suite"] == "coding"
    assert "</html>" in (place / "mine.html").read_text("utf-8")


def test_key_is_sent_and_written_nowhere(
    place: Path,
    scripted_server: StartServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("BOX_KEY", KEY)
    server = scripted_server(ALWAYS, api_key=KEY)
    assert run(["bench", "--url", server.url, "--api-key-env", "BOX_KEY", *SHORT, "--html", "a.html"]) == 0
    written = [path.read_text("utf-8") for path in place.rglob("*") if path.is_file()]
    assert len(written) > 4
    assert not [text for text in [*written, *capsys.readouterr()] if KEY in text]


def test_speed_is_remembered_for_later(place: Path, scripted_server: StartServer):
    server = scripted_server(ALWAYS)
    assert run(["bench", "--url", server.url, *SHORT]) == 0
    found = baseline_for(f"url:{server.url}", place / "state" / "baselines.json")
    assert found is not None
    assert (found.suite, found.decode_rate, found.accept_rate) == ("coding", 100, 0.5)


def test_speed_with_failed_requests_is_not_remembered(place: Path, scripted_server: StartServer):
    server = scripted_server("warm", {"fault": "http_500"}, ALWAYS)
    assert run(["bench", "--url", server.url, *SHORT]) == 5
    assert not (place / "state" / "baselines.json").exists()


def test_server_that_is_not_there_leaves_the_figures_of_the_other(
    scripted_server: StartServer, capsys: pytest.CaptureFixture[str]
):
    gone, there = scripted_server(), scripted_server(ALWAYS)
    gone.close()
    assert run(["bench", "--url", gone.url, "--url", there.url, *SHORT]) == 5
    out = capsys.readouterr().out
    assert "100.00" in out
    assert f"127.0.0.1:{gone.port} failed: no server answers" in out


def test_without_any_figure_there_is_no_report(
    place: Path, scripted_server: StartServer, capsys: pytest.CaptureFixture[str]
):
    gone = scripted_server()
    gone.close()
    assert run(["bench", "--url", gone.url, *SHORT]) == 5
    out, err = capsys.readouterr()
    assert "nothing was measured" in out
    assert "report:" not in err
    assert [path.name for path in report_folder(place).glob("*.*")] == ["result.json"]


def test_own_prompts_are_sent(place: Path, scripted_server: StartServer):
    (place / "story.md").write_text("Tell me a story.", "utf-8")
    server = scripted_server(ALWAYS)
    arguments = ("--prompt-file", "story.md", "--runs", "1", "--max-tokens", "9", "--temperature", "0.1")
    assert run(["bench", "--url", server.url, *arguments]) == 0
    body = server.chats[-1].body
    assert (body["messages"][0]["content"], body["max_tokens"]) == ("Tell me a story.", 9)
    assert body["temperature"] == 0.1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--compare", "embedded"], "--compare needs two profiles"),
        (["embedded", "embedded"], "embedded is named twice"),
        (["embeded"], "unknown profile 'embeded'"),
        (["embedded-small", "--against-plain"], "embedded-small has no speculation"),
        (["remote", "--against-plain"], "runs elsewhere"),
        (["--greedy", "--temperature", "1"], "--greedy is temperature 0"),
        (["--runs", "0"], "'0' is no whole number"),
        (["--extra-inputs", "[1]"], "not a JSON object"),
        (["--timeout", "nan"], "'nan' is no number"),
        (["--suite", "poems"], "--suite/--bench takes "),
        (["--category", "poems"], "no category or prompt 'poems'"),
        (["--prompt-file", "missing.md"], "cannot read the prompts in missing.md"),
        (["--url", "http://user:pass@box"], "server.url"),
        (["--url", ""], "server.url"),
    ],
)
def test_mistake_is_told_before_anything_starts(
    arguments: list[str], words: str, place: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["bench", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert not (place / "state").exists()


def scripted_engine(script: Path) -> Callable[[LoadedSettings], Serving]:
    """Profiles are served by a program that answers from a script."""
    program = (sys.executable, "-m", "tests.e2e.scripted_engine", str(script))
    return lambda loaded: replace(choose(loaded), command=program)


def make_profile(place: Path, name: str, kind: str) -> None:
    """A profile of a model file that is there."""
    (place / "model.gguf").write_bytes(b"x")
    folder = place / "config" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    text = f'[target]\nfile = "{place / "model.gguf"}"\n[speculation]\nkind = "{kind}"\n'
    (folder / f"{name}.toml").write_text(text, "utf-8")


def test_profile_is_compared_with_itself_without_speculation_and_stopped_afterwards(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    make_profile(place, "mine", "ngram-simple")
    script = place / "script.json"
    script.write_text(json.dumps([{"text": "class Task: pass", "times": 0}]), "utf-8")
    request = BenchRequest(profiles=("mine",), against_plain=True, runs=2, limit=1, categories=("coding",))
    code = run_bench(request, lambda step: None, lambda text: None, serve=scripted_engine(script))
    assert code == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[2:4]] == ["mine-plain", "mine"]
    assert "decode_speedup is against mine-plain" in out
    assert not list((place / "state" / "run").glob("*.record.json"))
    assert len(json.loads((place / "state" / "baselines.json").read_text("utf-8"))) == 2


def test_profiles_that_draft_differently_share_their_plain_twin(place: Path):
    from agent.app.measure.benched import contestants

    for kind in ("ngram-simple", "ngram-mod"):
        make_profile(place, kind, kind)
    found = contestants(BenchRequest(profiles=("ngram-simple", "ngram-mod"), against_plain=True))
    assert [(one.report.name, one.report.baseline) for one in found] == [
        ("ngram-simple-plain", ""),
        ("ngram-simple", "ngram-simple-plain"),
        ("ngram-mod", "ngram-simple-plain"),
    ]


def test_keys_in_further_arguments_of_a_server_are_not_shown(place: Path):
    from agent.app.measure.benched import contestants

    make_profile(place, "mine", "none")
    path = place / "config" / "profiles" / "mine.toml"
    words = '["--hf-token", "very-secret", "--some-key=very-secret", "--numa", "isolate"]'
    path.write_text(f'engine = "llama-server"\nextra_args = {words}\n' + path.read_text("utf-8"), "utf-8")
    (one,) = contestants(BenchRequest(profiles=("mine",)))
    assert "very-secret" not in json.dumps(one.report.facts)
    assert "isolate" in json.dumps(one.report.facts)


def test_command_line_that_asks_for_a_plain_twin_of_a_server_elsewhere_is_refused():
    from agent.app.measure.benched import contestants

    with pytest.raises(UsageError, match="runs elsewhere"):
        contestants(BenchRequest(profiles=("remote",), against_plain=True))

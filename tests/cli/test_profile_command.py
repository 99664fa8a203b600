"""`agent profile new` and `edit`."""

import sys
import tomllib
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.core.errors import ExitCode
from agent.server.profile_files import load_profile

SHIPPED = Path(__file__).parents[2] / "server_profiles"


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the person's own profiles, which is not there yet."""
    for kind in ("CONFIG", "STATE", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_{kind}_HOME", str(tmp_path / kind.lower()))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "config" / "profiles"


def editor(tmp_path: Path, code: str) -> str:
    """An editor that runs `code` on the file, whose path is `path`."""
    script = tmp_path / "my editor.py"
    script.write_text(
        f"import sys, pathlib\npath = pathlib.Path(sys.argv[-1])\nassert sys.argv[1] == '--wait'\n{code}\n",
        "utf-8",
    )
    return f"{sys.executable} '{script}' --wait"


def test_new_profile_says_everything_of_its_base_in_comments(own: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["profile", "new", "mine", "--from", "gemma4-31b-dflash"]) == 0
    path = Path(capsys.readouterr().out.strip())
    assert path == own / "mine.toml"
    text = path.read_text("utf-8")
    assert set(tomllib.loads(text)) == {"extends", "description"}
    assert "# cross_context = 1024" in text
    assert load_profile("mine", [own, SHIPPED]).speculation.cross_context == 1024


def test_every_line_of_a_new_profile_is_valid_when_its_mark_is_taken_off(own: Path):
    assert run(["profile", "new", "mine", "--from", "qwen3.6-27b-dflash-speed"]) == 0
    path = own / "mine.toml"
    settings = path.read_text("utf-8").partition("\n\n")[2]
    lines = [line.removeprefix("# ") for line in settings.splitlines()]
    path.write_text("\n".join(lines), "utf-8")
    base = load_profile("qwen3.6-27b-dflash-speed", [SHIPPED])
    changes = {"name": base.name, "description": base.description}
    assert load_profile("mine", [own, SHIPPED]).model_copy(update=changes) == base


def test_new_profile_of_the_name_of_a_shipped_one_extends_it(own: Path):
    assert run(["profile", "new", "gemma4-31b"]) == 0
    assert load_profile("gemma4-31b", [own, SHIPPED]).context == 32768


def test_new_profile_may_start_from_a_file(own: Path, tmp_path: Path):
    (tmp_path / "loose.toml").write_text('extends = "gemma4-31b"\ncontext = 4096\n', "utf-8")
    assert run(["profile", "new", "mine", "--from", "loose.toml"]) == 0
    assert load_profile("mine", [own, SHIPPED]).context == 4096


def test_profile_that_is_there_is_never_replaced(own: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["profile", "new", "mine", "--from", "gemma4-31b"]) == 0
    (own / "mine.toml").write_text('extends = "gemma4-31b"\n', "utf-8")
    assert run(["profile", "new", "mine", "--from", "remote"]) == ExitCode.USAGE
    assert "is there already" in capsys.readouterr().err
    assert (own / "mine.toml").read_text("utf-8") == 'extends = "gemma4-31b"\n'


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "x.toml", "a b"])
def test_name_that_could_not_be_found_again_is_refused(
    name: str, own: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["profile", "new", name, "--from", "remote"]) == ExitCode.USAGE
    assert "is no name for a profile" in capsys.readouterr().err
    assert not own.exists()


def test_unknown_base_writes_nothing(own: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["profile", "new", "mine"]) == ExitCode.USAGE
    assert "unknown profile 'mine'" in capsys.readouterr().err
    assert not own.exists()


def test_edit_opens_the_persons_file_and_checks_it(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    code = "path.write_text(path.read_text().replace('# context = 32768', 'context = 2048'))"
    monkeypatch.setenv("EDITOR", editor(tmp_path, code))
    assert run(["profile", "edit", "gemma4-31b"]) == 0
    assert load_profile("gemma4-31b", [own, SHIPPED]).context == 2048
    assert "gemma4-31b: ok" in capsys.readouterr().err


def test_mistake_made_in_the_editor_is_told_and_kept(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("VISUAL", editor(tmp_path, "path.write_text('contxt = 1')"))
    assert run(["profile", "edit", "remote"]) == ExitCode.USAGE
    assert "did you mean 'context'" in capsys.readouterr().err
    assert (own / "remote.toml").read_text("utf-8") == "contxt = 1"


def test_edit_without_an_editor_says_how_to_name_one(own: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["profile", "edit", "remote"]) == ExitCode.USAGE
    assert "export EDITOR=" in capsys.readouterr().err
    assert not own.exists()


def test_editor_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("EDITOR", "no-such-editor -w")
    assert run(["profile", "edit", "remote"]) == ExitCode.USAGE
    assert "cannot run the editor no-such-editor" in capsys.readouterr().err


@pytest.mark.parametrize("name", [path.stem for path in SHIPPED.glob("*.toml")])
def test_shown_profile_is_the_same_profile(
    name: str, own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["profile", "show", name]) == 0
    (tmp_path / f"{name}.toml").write_text(capsys.readouterr().out, "utf-8")
    shipped = load_profile(name, [SHIPPED])
    shown = load_profile(str(tmp_path / f"{name}.toml"), [SHIPPED])
    assert shown == shipped
    assert shipped.engine == "embedded" or shown.model_fields_set == shipped.model_fields_set


def test_new_profile_without_anything_to_start_from_says_what_to_type(
    own: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["profile", "new", "mine"]) == ExitCode.USAGE
    assert "`agent profile new mine --from PROFILE`" in capsys.readouterr().err

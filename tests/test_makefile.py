"""What `make` installs and runs for which target; stand-ins for programs write down how they were called."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RUN, DEVELOP = ".[embedded]", ".[embedded,dev]"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy2(ROOT / name, tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("uv", "agent", "ruff", "pyright", "python"):
        script = f'#!/bin/sh\nmkdir -p .venv\necho "{name} $*" >>calls\n[ "$FAILING" != {name} ] && exit 0\n'
        script += f'[ "$(grep -c "^{name} " calls)" -gt "$TIMES" ]\n'
        (programs / name).write_text(script, encoding="utf-8")
        (programs / name).chmod(0o755)
    return tmp_path


def make(checkout: Path, target: str) -> list[str]:
    """The extras that were installed for the target."""
    calls = checkout / "calls"
    calls.unlink(missing_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(
        ["make", target],
        cwd=checkout,
        env={**kept, "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}"},
        check=True,
        capture_output=True,
    )
    called = calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []
    return [call.split()[-1] for call in called if call.startswith("uv pip install")]


def make_test(checkout: Path, failing: str, times: int = 99) -> tuple[int, str, bool]:
    """Status, the last line that is not make's own, and whether the tests ran.

    `failing` names a program whose first calls fail, as many as `times`.
    """
    done = outcome_of_make_test(checkout, failing, times)
    said = [line for line in done.stderr.splitlines() if "***" not in line]
    called = (checkout / "calls").read_text(encoding="utf-8")
    return done.returncode, said[-1] if said else "", "python -m pytest -n " in called


def outcome_of_make_test(checkout: Path, failing: str, times: int) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", "test"],
        cwd=checkout,
        env={
            **kept,
            "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}",
            "FAILING": failing,
            "TIMES": str(times),
        },
        check=False,
        capture_output=True,
        text=True,
    )


def test_all_that_is_right_ends_with_the_tests(checkout: Path):
    assert make_test(checkout, "") == (0, "", True)


def test_tests_that_fail_twice_are_a_failure(checkout: Path):
    assert make_test(checkout, "python") == (2, "make: what failed above once more, one test at a time", True)


def test_tests_that_pass_by_themselves_are_none(checkout: Path):
    beforehand = 2  # what is compiled has no say
    code, said, _ = make_test(checkout, "python", times=beforehand + 1)
    assert (code, said) == (0, "make: what failed above once more, one test at a time")
    calls = (checkout / "calls").read_text(encoding="utf-8").splitlines()
    assert "-n 0 --last-failed" in calls[-1]


@pytest.mark.parametrize(
    ("program", "parts"), [("ruff", "lint"), ("pyright", "types"), ("agent", "test-models test-server")]
)
def test_what_fails_before_the_tests_is_told_after_them(checkout: Path, program: str, parts: str):
    said = f"make: failed before the tests, see above: {parts}"
    assert make_test(checkout, program) == (2, said, True)


def test_what_the_check_of_types_found_is_shown_although_it_runs_beside_others(checkout: Path):
    pyright = checkout / "bin" / "pyright"
    pyright.write_text("#!/bin/sh\necho a wrong type\nexit 1\n", encoding="utf-8")
    assert "a wrong type\n" in outcome_of_make_test(checkout, "", 0).stdout


def test_the_model_of_the_demo_needs_no_tools_of_development(checkout: Path):
    assert make(checkout, "model") == [RUN]
    assert "agent model pull embedded" in (checkout / "calls").read_text(encoding="utf-8")
    assert make(checkout, "model") == []


def test_developing_adds_to_what_the_demo_has_installed(checkout: Path):
    make(checkout, "model")
    assert make(checkout, "env") == [DEVELOP]
    assert make(checkout, "env") == []


def test_an_environment_to_develop_in_runs_the_demo_too(checkout: Path):
    make(checkout, "env")
    assert make(checkout, "model") == []


def test_changed_requirements_are_installed_anew(checkout: Path):
    make(checkout, "env")
    later = (checkout / ".venv" / ".installed").stat().st_mtime + 10
    os.utime(checkout / "pyproject.toml", (later, later))
    assert make(checkout, "env") == [DEVELOP]

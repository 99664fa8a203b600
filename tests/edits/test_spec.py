"""What the settings say about files after an edit."""

import pytest

from agent.config.after_edit import PRESET_NAMES
from agent.edits.spec import PRESETS, EditCommand, EditStep, formatter_only, steps_from


def test_settings_and_presets_know_the_same_names():
    assert tuple(PRESETS) == PRESET_NAMES


@pytest.mark.parametrize(
    ("glob", "path", "is_meant"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/deep/a.py", True),
        ("*.py", "a.pyi", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "lib/src/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("./src/*.py", "src/a.py", True),
        ("Makefile", "sub/Makefile", True),
    ],
)
def test_glob_is_about_the_name_or_with_a_slash_about_the_path(glob: str, path: str, is_meant: bool):
    assert EditStep(globs=(glob,)).is_about(path) is is_meant


@pytest.mark.parametrize(
    ("path", "word"),
    [("a.py", "a.py"), ("my file.py", "'my file.py'"), ("-rf.py", "./-rf.py"), ("$(x).py", "'$(x).py'")],
)
def test_file_is_one_word_of_the_command_whatever_its_name(path: str, word: str):
    assert EditCommand("fmt {file}").filled(path) == f"fmt {word}"


def test_name_of_a_preset_is_enough():
    (step,) = steps_from(["ruff"])
    assert step.format is not None
    assert step.check is not None
    assert step.check.label == "ruff check"
    assert step.probe is None  # the person asked for it, so it formats every file


def test_preset_can_be_changed_in_parts():
    (step,) = steps_from([{"use": "ruff", "check": "", "seconds": 3, "glob": "src/*.py"}])
    assert step.format is not None
    assert (step.format.label, step.format.seconds) == ("ruff format", 3.0)
    assert step.check is None
    assert step.globs == ("src/*.py",)


def test_own_commands_are_named_by_what_they_are():
    (step,) = steps_from([{"glob": ["*.json"], "check": "python -m json.tool {file}"}])
    assert step.check is not None
    assert step.check.label == "python -m json.tool"
    assert step.format is None


def test_formatter_of_a_project_checks_nothing_and_looks_first():
    step = formatter_only("ruff")
    assert step.check is None
    assert step.probe is not None

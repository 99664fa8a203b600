"""Changing one value in a file that a person wrote."""

import tomllib

import pytest

from agent.config.edit import set_user_value, unset_user_value, user_file_mistakes
from agent.core.errors import UsageError
from tests.config.conftest import Home

WRITTEN = """\
# My settings
profile = "a"  # the fast one

[limits]   # keep it short
max_steps = 3

[permissions]
deny = [
    "shell(rm *)",  # never
]
"""


def change(home: Home, key: str, text: str) -> str:
    set_user_value(key, text, home.environment)
    return home.user_file.read_bytes().decode("utf-8")


def test_the_first_value_creates_the_file(home: Home) -> None:
    assert tomllib.loads(change(home, "limits.max_steps", "3")) == {"limits": {"max_steps": 3}}


def test_comments_and_order_survive(home: Home) -> None:
    home.user(WRITTEN)
    assert change(home, "limits.max_steps", "9") == WRITTEN.replace("max_steps = 3", "max_steps = 9")


def test_a_new_key_goes_into_its_table(home: Home) -> None:
    home.user(WRITTEN)
    text = change(home, "limits.max_tokens", "9")
    assert tomllib.loads(text)["limits"] == {"max_steps": 3, "max_tokens": 9}
    assert "# keep it short" in text


def test_a_top_level_key_does_not_land_in_a_table(home: Home) -> None:
    home.user("[limits]\nmax_steps = 3\n")
    assert tomllib.loads(change(home, "profile", "x")) == {"profile": "x", "limits": {"max_steps": 3}}


@pytest.mark.parametrize(
    "written", ["limits = {max_steps = 3}\n", "limits.max_steps = 3\n", "[limits]\nmax_steps=3"]
)
def test_every_spelling_of_a_table_can_be_changed(home: Home, written: str) -> None:
    home.user(written)
    assert tomllib.loads(change(home, "limits.max_tokens", "9")) == {
        "limits": {"max_steps": 3, "max_tokens": 9}
    }


def test_line_ends_survive(home: Home) -> None:
    home.user_bytes(b"# a\r\nprofile = 'a'\r\n")
    assert change(home, "profile", "b").startswith("# a\r\nprofile = ")


def test_a_list_replaces_the_list_in_this_file(home: Home) -> None:
    home.user(WRITTEN)
    text = change(home, "permissions.deny", "shell(a, b), write(c)")
    assert tomllib.loads(text)["permissions"]["deny"] == ["shell(a, b)", "write(c)"]


@pytest.mark.parametrize(
    ("key", "text"), [("limits.max_steps", "x"), ("limits.max_step", "3"), ("limits", "3")]
)
def test_a_wrong_key_or_value_writes_nothing(home: Home, key: str, text: str) -> None:
    home.user(WRITTEN)
    with pytest.raises(UsageError):
        set_user_value(key, text, home.environment)
    assert home.user_file.read_text(encoding="utf-8") == WRITTEN


def test_a_file_with_a_mistake_is_left_alone(home: Home) -> None:
    home.user("profile = \n")
    with pytest.raises(UsageError, match="not valid TOML"):
        set_user_value("profile", "x", home.environment)
    assert home.user_file.read_text(encoding="utf-8") == "profile = \n"


def test_the_mode_of_the_file_is_kept(home: Home) -> None:
    home.user(WRITTEN)
    home.user_file.chmod(0o640)
    change(home, "profile", "x")
    assert home.user_file.stat().st_mode & 0o777 == 0o640


def test_a_link_to_a_file_elsewhere_stays_a_link(home: Home) -> None:
    elsewhere = home.folder / "dotfiles.toml"
    elsewhere.write_text(WRITTEN, encoding="utf-8")
    home.user_file.parent.mkdir(parents=True)
    home.user_file.symlink_to(elsewhere)
    change(home, "profile", "x")
    assert home.user_file.is_symlink()
    assert 'profile = "x"' in elsewhere.read_text(encoding="utf-8")


def test_a_place_that_cannot_be_written_is_one_line(home: Home) -> None:
    home.user_file.parent.write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot create the folder"):
        set_user_value("profile", "x", home.environment)


@pytest.mark.parametrize(
    ("key", "line"), [("limits.max_steps", "max_steps = 3\n"), ("profile", 'profile = "a"  # the fast one\n')]
)
def test_a_value_is_taken_out_and_the_rest_stays(home: Home, key: str, line: str) -> None:
    home.user(WRITTEN)
    assert unset_user_value(key, home.environment) == (home.user_file, True)
    assert home.user_file.read_text("utf-8") == WRITTEN.replace(line, "")


def test_a_value_that_is_not_there_changes_nothing(home: Home) -> None:
    home.user(WRITTEN)
    assert unset_user_value("limits.max_tokens", home.environment) == (home.user_file, False)
    assert home.user_file.read_text("utf-8") == WRITTEN


def test_a_misspelt_key_cannot_be_taken_out(home: Home) -> None:
    with pytest.raises(UsageError, match="max_stepps") as raised:
        unset_user_value("limits.max_stepps", home.environment)
    assert "limits.max_steps" in raised.value.hint


BROKEN = """\
zebra = 1  # of old

[permissions]
mod = "ask"

[limits]
max_steps = 0
max_tokens = 9

[limit]
a = 1
"""


def test_a_file_with_mistakes_takes_a_right_value(home: Home) -> None:
    home.user(BROKEN)
    assert change(home, "limits.max_tokens", "7") == BROKEN.replace("= 9", "= 7")
    assert [mistake.key for mistake in user_file_mistakes(home.environment)] == [
        "zebra",
        "permissions.mod",
        "limits.max_steps",
        "limit",
    ]


@pytest.mark.parametrize(
    ("key", "gone"),
    [
        ("zebra", "zebra = 1  # of old\n"),
        ("permissions.mod", 'mod = "ask"\n'),
        ("limits.max_steps", "max_steps = 0\n"),
        ("limit", "\n[limit]\na = 1\n"),
        ("limit.a", "a = 1\n"),
    ],
)
def test_each_mistake_can_be_taken_out_of_a_file(home: Home, key: str, gone: str) -> None:
    home.user(BROKEN)
    assert unset_user_value(key, home.environment) == (home.user_file, True)
    left = home.user_file.read_text(encoding="utf-8")
    assert left.split() == BROKEN.replace(gone, "").split()


def test_a_name_with_a_dot_in_quotes_can_be_taken_out(home: Home) -> None:
    home.user("'limits.max_steps' = 3\n")
    assert unset_user_value("limits.max_steps", home.environment)[1]
    assert home.load().settings.limits.max_steps == 40


def test_a_whole_table_of_ours_is_not_taken_out(home: Home) -> None:
    home.user(WRITTEN)
    with pytest.raises(UsageError, match="unknown setting 'limits'"):
        unset_user_value("limits", home.environment)

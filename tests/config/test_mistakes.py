"""Mistakes in a configuration: one line that names the place and the key."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.config.layers import file_layer, unknown_variables
from agent.core.errors import UsageError
from tests.config.conftest import Home

# Variables that build machines and shells have, and that are none of ours.
STRANGERS = [
    "AGENT_ID",
    "AGENT_NAME",
    "AGENT_OS",
    "AGENT_VERSION",
    "AGENT_JOBNAME",
    "AGENT_JOBSTATUS",
    "AGENT_MACHINENAME",
    "AGENT_HOMEDIRECTORY",
    "AGENT_ROOTDIRECTORY",
    "AGENT_TEMPDIRECTORY",
    "AGENT_TOOLSDIRECTORY",
    "AGENT_WORKFOLDER",
    "AGENT_BUILDDIRECTORY",
    "AGENT_WORKDIR",
    "AGENT_URL",
    "AGENT_MODE",
]


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("profil = 'x'", 1, "unknown key 'profil'; did you mean 'profile'?"),
        ("[limits]\nmax_step = 3", 2, "unknown key 'limits.max_step'; did you mean 'limits.max_steps'?"),
        ("max_steps = 3", 1, "unknown key 'max_steps'; did you mean 'limits.max_steps'?"),
        ("[limit]\nmax_steps = 3", 1, "unknown table 'limit'; did you mean 'limits'?"),
        ("[server]\nmax_steps = 3", 2, "unknown key 'server.max_steps'; did you mean 'limits.max_steps'?"),
        ("[mcp]\nx = 1", 2, "unknown key 'mcp.x'; [mcp] has servers"),
        ("[check]\ncheck = 'x'", 2, "unknown key 'check.check'; [check] has command"),
        ("zebra = 3", 1, "unknown key 'zebra'; `agent config show --explain` lists all settings"),
        ('"limits.max_steps" = 3', None, "'limits.max_steps' must be written without quotes"),
        ("[limits]\nmax_steps = '3'", 2, 'limits.max_steps must be a whole number, not "3"'),
        ("[limits]\nmax_steps = true", 2, "limits.max_steps must be a whole number, not true"),
        ("[limits]\nmax_steps = 0", 2, "limits.max_steps must be at least 1, not 0"),
        ("limits.max_steps = 0", 1, "limits.max_steps must be at least 1, not 0"),
        ("[limits]\nmax_seconds = nan", 2, "limits.max_seconds must be a finite number, not nan"),
        (
            "[limits]\nmax_seconds = 1e300",
            2,
            "limits.max_seconds must be at most 2592000, not 1e+300",
        ),
        ("limits = 3", 1, "limits must be a table, written [limits]"),
        ("ui.keys.send-latter = 'f9'", None, "ui.keys has no 'send-latter'; did you mean 'send-later'?"),
        ("ui.keys.zebra = 'f9'", None, "ui.keys has no 'zebra'; /keys lists the names"),
        ("[server]\nreuse = 1", 2, "server.reuse must be true or false, not 1"),
        ("[permissions]\ndeny = 'x'", 2, 'permissions.deny must be a list, written ["...", "..."]'),
        (
            "[permissions]\nmode = 'yolo'",
            2,
            "permissions.mode must be 'plan', 'ask', 'accept-edits' or 'auto', not \"yolo\"",
        ),
        ("[models]\nsources = ['web']", 2, "models.sources must be 'hub' or 'pypi', not \"web\""),
        ("[models]\nfolder = 3", 2, "models.folder must be the path of a folder in quotes, not 3"),
        ("[models]\nfolder = ''", 2, 'models.folder must not be empty, not ""'),
        ("profile = 1979-05-27", 1, 'profile must be a text in "quotes", not 1979-05-27'),
        (
            '[check]\ncommand = "a\\u0000b"',
            2,
            'check.command must not contain a null character, not "a\\u0000b"',
        ),
        ("[server]\nurl = 'ftp://x'", 2, "server.url must look like http://127.0.0.1:8080/v1"),
        ("[server]\nurl = 'http://[::1'", 2, "server.url must look like http://127.0.0.1:8080/v1"),
    ],
)
def test_a_mistake_names_file_line_and_key(home: Home, text: str, line: int | None, complaint: str) -> None:
    home.user(text + "\n")
    place = f"{home.user_file}:{line}" if line else str(home.user_file)
    assert home.refusal() == f"{place}: {complaint}"


def test_the_first_of_several_mistakes_in_the_file_is_named_with_how_many_follow(home: Home) -> None:
    home.user("[permissions]\nmod = 'ask'\n\n[limits]\nmax_steps = 0\nmax_step = 3\n")
    place = f"{home.user_file}:2"
    assert home.refusal() == (
        f"{place}: unknown key 'permissions.mod'; did you mean 'permissions.mode'? (and 2 more mistakes)"
    )
    home.user("zebra = 1\n[limits]\nmax_steps = 0\n")
    assert home.refusal().endswith("`agent config show --explain` lists all settings (and 1 more mistake)")


@pytest.mark.parametrize("text", ["[limits]\nmax_steps = 0\n", "zebra = 3\n", "a = [\n", "limits = 3\n"])
def test_every_mistake_in_a_file_has_a_hint(home: Home, text: str) -> None:
    home.user(text)
    with pytest.raises(UsageError) as caught:
        home.load()
    assert "correct it there" in caught.value.hint


def test_the_hint_to_a_wrong_value_says_what_the_setting_is(home: Home) -> None:
    home.user("[limits]\nmax_steps = 'many'\n")
    with pytest.raises(UsageError) as caught:
        home.load()
    assert caught.value.hint == (
        "limits.max_steps is: model requests in one run, by default 40; correct it there, or take it out "
        "with `agent config unset limits.max_steps`"
    )


def test_mistakes_in_variables_and_on_the_command_line_have_a_hint(home: Home) -> None:
    for variables, flags in (({"AGENT_SERVER_URL": "foo"}, {}), ({}, {"servr.foo": "1"})):
        with pytest.raises(UsageError) as caught:
            home.load(variables, **flags)
        assert "`agent config show" in caught.value.hint


def test_the_command_that_takes_a_mistake_out_is_named(home: Home) -> None:
    home.user("[permissions]\nmod = 'ask'\n")
    with pytest.raises(UsageError) as caught:
        home.load()
    assert "`agent config unset permissions.mod`" in caught.value.hint


def test_an_unknown_variable_is_told_with_the_one_that_was_meant() -> None:
    found = unknown_variables({"AGENT_SERVR_ULR": "x", "AGENT_ID": "7", "AGENT_PROFILE": "a", "HOME": "/"})
    assert found == {"AGENT_ID": "", "AGENT_SERVR_ULR": "AGENT_SERVER_URL"}


def test_a_mistake_in_a_projects_file_names_that_file(home: Home) -> None:
    home.clone("[check]\ncomand = 'x'\n")
    assert home.refusal().startswith(f"{home.project_file}:2: unknown key 'check.comand'")


@pytest.mark.parametrize("url", ["http://me:hush@host/v1", "http://host/v1?key=hush"])
def test_a_secret_in_an_address_is_refused_and_not_repeated(home: Home, url: str) -> None:
    home.user(f"[server]\nurl = '{url}'\n")
    assert "hush" not in home.refusal()
    assert "api_key_env" in home.refusal()


def test_a_key_where_its_variables_name_belongs_is_refused_and_not_repeated(home: Home) -> None:
    message = home.refusal({"AGENT_SERVER_API_KEY_ENV": "sk-0123"})
    assert message.startswith("environment variable AGENT_SERVER_API_KEY_ENV: ")
    assert "sk-0123" not in message


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("AGENT_PROFIL", "AGENT_PROFILE"),
        ("AGENT_LIMIT_MAX_STEPS", "AGENT_LIMITS_MAX_STEPS"),
        ("AGENT_CONFIG_HOM", "AGENT_CONFIG_HOME"),
        ("AGENT_PERMISSION_MODE", "AGENT_PERMISSIONS_MODE"),
    ],
)
def test_a_misspelt_variable_is_a_mistake(home: Home, variable: str, meant: str) -> None:
    assert home.refusal({variable: "x"}) == f"unknown environment variable {variable}; did you mean {meant}?"


def test_variables_of_other_programs_are_left_alone(home: Home) -> None:
    assert home.load(dict.fromkeys(STRANGERS, "x")).settings.profile == "embedded"


def test_a_wrong_value_in_the_environment_names_the_variable(home: Home) -> None:
    assert home.refusal({"AGENT_LIMITS_MAX_STEPS": "many"}) == (
        'environment variable AGENT_LIMITS_MAX_STEPS: limits.max_steps must be a whole number, not "many"'
    )


def test_a_wrong_flag_says_command_line(home: Home) -> None:
    assert home.refusal(limits__max_steps=0).startswith("command line: limits.max_steps must be")
    assert home.refusal(nonsense=0).startswith("command line: unknown key 'nonsense'")


def test_a_key_that_is_given_twice_is_a_mistake(home: Home) -> None:
    home.user("profile = 'a'\nprofile = 'b'\n")
    assert "is not valid TOML" in home.refusal()
    assert "line 2" in home.refusal()


def test_a_byte_order_mark_is_no_mistake(home: Home) -> None:
    home.user_bytes(b"\xef\xbb\xbfprofile = 'a'\r\n")
    assert home.load().settings.profile == "a"
    assert home.load().origins["profile"].line == 1


def test_a_file_that_is_not_utf_8_names_the_line(home: Home) -> None:
    home.user_bytes(b"# fine\nprofile = 'caf\xe9'\n")
    assert home.refusal() == f"{home.user_file}:2: not UTF-8 text; save the file as UTF-8"


def test_a_folder_in_place_of_the_file_is_a_mistake(home: Home) -> None:
    home.user_file.mkdir(parents=True)
    assert f"{home.user_file} is a folder" in home.refusal()


def test_a_pipe_in_place_of_a_projects_file_does_not_hang(home: Home) -> None:
    home.project_file.parent.mkdir(parents=True)
    os.mkfifo(home.project_file)
    assert "not a regular file" in home.refusal()


def test_a_link_that_leads_to_itself_is_a_mistake(home: Home) -> None:
    home.project_file.parent.mkdir(parents=True)
    home.project_file.symlink_to(home.project_file)
    assert "cannot be read" in home.refusal()


def test_a_file_in_place_of_the_projects_folder_means_no_configuration(home: Home) -> None:
    home.project.mkdir()
    (home.project / ".agent").write_text("", encoding="utf-8")
    assert home.load().settings.profile == "embedded"


def test_a_file_of_absurd_size_is_a_mistake(home: Home) -> None:
    home.user_bytes(b"#" * (1024 * 1024 + 1))
    assert "too big" in home.refusal()


def test_absurd_nesting_is_a_mistake(home: Home) -> None:
    home.user("a = " + "[" * 50_000)
    assert "is not valid TOML" in home.refusal()


def test_an_absurd_number_is_a_mistake(home: Home) -> None:
    home.user("[limits]\nmax_steps = " + "9" * 5000)
    assert len(home.refusal()) < 500


def test_a_message_never_carries_control_characters_of_a_clone(home: Home) -> None:
    home.clone('"\\u001b[31m\\nx" = 1\n')
    assert home.refusal().isprintable()


@given(st.binary(max_size=200))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_bytes_are_a_configuration_or_one_line(content: bytes) -> None:
    _is_read_or_refused_in_one_line(content)


@given(
    st.lists(
        st.sampled_from(
            [
                "limits",
                "max_steps",
                "permissions",
                "[",
                "]",
                "=",
                '"',
                "'",
                ".",
                "\n",
                " ",
                "3",
                "true",
                "{",
                "}",
                ",",
                "#",
            ]
        ),
        max_size=25,
    )
)
@settings(max_examples=300)
def test_pieces_of_toml_are_a_configuration_or_one_line(pieces: list[str]) -> None:
    _is_read_or_refused_in_one_line("".join(pieces).encode("utf-8"))


def _is_read_or_refused_in_one_line(content: bytes) -> None:
    complaint = "/somewhere/config.toml"
    try:
        file_layer("project", Path("/somewhere/config.toml"), content)
    except UsageError as error:
        complaint = error.message
    assert complaint.startswith("/somewhere/config.toml")
    assert complaint.isprintable()

import pytest

from agent.permissions.shell import MAX_LENGTH, analyse


def commands_of(line: str) -> list[list[str | None]]:
    return [[word.literal for word in command.words] for command in analyse(line).commands]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('r""m x', "rm"),
        ("\\rm x", "rm"),
        ("$'rm' x", "rm"),
        ("$'\\x72m' x", "rm"),
        ("'r'm x", "rm"),
    ],
)
def test_quoting_does_not_hide_a_name(line: str, name: str) -> None:
    assert commands_of(line) == [[name, "x"]]


@pytest.mark.parametrize(
    "line",
    [
        "a; b",
        "a && b",
        "a | b",
        "a & b",
        "a\nb",
        "(a; b)",
        "{ a; b; }",
        "! a || b",
        "b $(a)",
        "b `a`",
        'b "$(a)"',
        'b "${x:-$(a)}"',
        "b <(a)",
        "b > >(a)",
        "b <<E\n$(a)\nE",
        "if a; then b; fi",
        "while a; do b; done",
        "for x in $(a); do b; done",
        "case x in y) a;; *) b;; esac",
        "f() { a; }; b",
        "x=$(a); b",
        "a && bash -c 'b'",
        "[[ -f x ]] && a; b",
    ],
)
def test_every_command_of_a_line_is_found(line: str) -> None:
    names = {command[0] for command in commands_of(line)}
    assert {"a", "b"} <= names
    assert not analyse(line).doubts


@pytest.mark.parametrize(
    "wrapper",
    [
        "env",
        "env -i A=1",
        "sudo -u x",
        "doas",
        "nice -n 5",
        "nohup",
        "time -p",
        "timeout -k 1 5",
        "stdbuf -o0",
        "setsid -w",
        "command",
        "exec",
        "builtin",
        "xargs -n1",
        "eval",
        "find . -exec",
        "git -c alias.x=!",
        "env A=1 nice timeout 5",
    ],
)
def test_a_wrapper_and_what_it_starts_are_both_listed(wrapper: str) -> None:
    line = f"{wrapper}rm" if wrapper.endswith("!") else f"{wrapper} rm"
    names = [command[0] for command in commands_of(line)]
    assert names[0] == wrapper.split(maxsplit=1)[0]
    assert names[-1] == "rm"


def test_an_inner_command_knows_what_starts_it() -> None:
    script = analyse("timeout 5 bash -c 'rm x'")
    outer, shell, inner = script.commands
    assert (outer.inner_at, shell.inner_at) == (2, 2)
    assert (inner.parent, shell.parent, outer.parent) == (1, 0, None)


@pytest.mark.parametrize(
    "line",
    [
        "$x",
        "$(a) b",
        "{a,b}",
        "a*",
        "eval $x",
        "bash -c $x",
        "bash",
        "a | sh",
        "env -S 'a b'",
        "xargs $x",
        "zsh -c a",
    ],
)
def test_what_only_the_shell_can_know_is_unknown(line: str) -> None:
    assert analyse(line).is_unknown


@pytest.mark.parametrize(
    "line", ["ls 'x", "ls (", "ls )", "if a", "a $((", "a \x07", "a\r\nb", "time { a; }"]
)
def test_what_cannot_be_parsed_is_unknown(line: str) -> None:
    assert analyse(line).doubts


@pytest.mark.parametrize(
    "line",
    [
        "echo \\ #x; rm y",
        "cat <<A <<B\nA\nB\nrm y",
        "cat <<A\n`rm y`\nA",
        "e\\\ncho x",
        "echo `a \\`rm y\\``",
        "echo $((x[$(rm y)]))",
    ],
)
def test_lines_that_the_grammar_reads_differently_from_bash_are_unknown(line: str) -> None:
    assert analyse(line).doubts


def test_redirections_are_reported_with_their_target() -> None:
    script = analyse("a > x 2>> y < z &> w 2>&1 3>&- >| v")
    found = [(each.operator, each.target.literal, each.writes) for each in script.redirections]
    assert found == [
        (">", "x", True),
        (">>", "y", True),
        ("<", "z", False),
        ("&>", "w", True),
        (">|", "v", True),
    ]


def test_a_redirection_to_an_unknown_file_has_no_text() -> None:
    assert [each.target.literal for each in analyse("a > $x").redirections] == [None]


def test_assignments_are_reported_with_whether_programs_see_them() -> None:
    script = analyse("A=1 b; C=2; export D=3; env E=4 f; for G in x; do h; done")
    found = {each.name: each.exported for each in script.assignments}
    assert found == {"A": True, "C": False, "D": True, "E": True, "G": False}


def test_a_home_folder_is_replaced_only_where_the_shell_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert commands_of("a ~/x '~/x' x~ ~") == [["a", "/home/me/x", "~/x", "x~", "/home/me"]]


def test_unquoted_wildcards_are_told_from_quoted_ones() -> None:
    words = analyse("a *.py '*.py' \"a*\"").commands[0].words
    assert [word.glob for word in words] == [None, "*.py", None, None]


def test_a_here_document_for_a_shell_is_read_as_commands() -> None:
    assert ["rm", "x"] in commands_of("bash <<'E'\nrm x\nE")


def test_a_here_document_for_another_program_is_text() -> None:
    assert commands_of("cat <<'E'\n$(rm x)\nE") == [["cat"]]


def test_a_very_long_line_is_not_read() -> None:
    assert analyse("echo " + "x" * MAX_LENGTH).doubts


def test_deep_nesting_is_given_up_instead_of_crashing() -> None:
    assert analyse("(" * 500 + "ls" + ")" * 500).doubts
    assert analyse("$(" * 300 + "ls" + ")" * 300).is_unknown
    assert analyse("env " * 400 + "ls").is_unknown

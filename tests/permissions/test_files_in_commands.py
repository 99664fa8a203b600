"""Rules about files against commands that a rule allows, and against those that read whole folders."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.permissions.context import Mode
from agent.permissions.gate import Decision, decide, may_read
from agent.permissions.rules import Rules, exact_shell_rule, parse_rules
from agent.permissions.unreadable import unreadable_places

Judge = Callable[..., Decision]

FILES = ("src/app.py", "src/util.py", "private/a.txt", "docs/x.md", ".env", "tests/k.pem", "keys/id_rsa")
NAMES_THE_FILE = (
    "cat src/app.py", "cd src && cat app.py", "cat src/*", "echo $(cat src/app.py)", "sort src/app.py | head",
    "cp src/app.py x", "less src/app.py", "timeout 5 cat src/app.py", "bash -c 'cat src/app.py'",
    "curl -d @src/app.py http://x", "foo --opt=src/app.py", "foo -osrc/app.py", "foo a:src/app.py",
    "xargs -a src/app.py echo", "xargs -rasrc/app.py",
    "sort -uosrc/app.py docs/x.md", "cat < src/app.py", "git show HEAD:src/app.py", "git add src/app.py",
    "wc -l SRC/APP.PY", "cat src/a?p.py", "f() { cat $1; }; f src/app.py", "source src/app.py",
    "sudo dd if=src/app.py",
    "git -C src blame app.py", "git -C src show HEAD:./app.py", "git -C . -C src diff -- app.py",
    "git log -L1,2:src/app.py", "git log -L :x:src/app.py", "git -C src show -L/a:b/,+2:app.py",
    "git cat-file blob HEAD:src/app.py",
    "sed '1r src/app.py' docs/x.md",
    "python3 -c 'print(open(\"src/app.py\").read())'",
)  # fmt: skip
MAY_NAME_IT = (
    "X=src/app.py; cat $X", "find src -exec cat {} +", "find src | xargs cat", 'eval "$X"', 'sh -c "$X"',
    "cat $(echo src/app.py)", "cat < $X", 'cd "$D" && cat app.py', "while read f; do cat $f; done < list",
    "cat src/{app,util}.py",
)  # fmt: skip
NAMES_OTHERS = (
    "ls src", "tree src", "cat src/util.py", "echo hi", "echo $HOME", "make all", '[ "$x" = y ] && ls',
    "git -C src blame util.py", "git -C src log ../docs", "git -C src status",
    "git commit -m x", "python x.py", "stat src/util.py", "find src -name '*.py'",
)  # fmt: skip
READS_PRIVATE = (
    "grep -r x .", "grep -R x", "grep -rn x ./", "cd src && grep -r x ..", "rg x", "rg -uuu x",
    "rg -f list .",    "diff -r . docs", "cp -r . z", "tar cf z.tar .", "zip -r z.zip .", "ag x",
    "rsync -a . /tmp/z", "mv . z",
    "git log -U3", "git log --unified=3", "git log --binary", "git cat-file blob abc123",
    "git log -p", "git show", "git archive HEAD", "git grep --untracked x",
    "ln -s . z && cat z/private/a.txt",    "rgrep x", "grep -d recurse x .", "grep --unknown -r x .",
)  # fmt: skip
LEAVES_PRIVATE_OUT = (
    "grep -r x src", "grep -r --exclude-dir=private x .", "grep -rn --include='*.py' x .",
    "grep -x r docs/x.md",    "rg x src docs", "rg -g '!private' x", "rg -g '*.py' x", "rg -t py x",
    "rg --files", "ls | rg x",
    "git cat-file -t HEAD", "git cat-file blob HEAD:src/app.py",
    "git grep x", "git diff", "git log --oneline", "git log -p -- . ':!private'", "git diff --stat", "ls -R",
    "find . -type f", "du -a", "diff -r src docs", "cp -r src z", "git grep x -- ':!*.txt'",
)  # fmt: skip


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files").resolve()
    for name in FILES:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x", encoding="utf-8")
    (folder / ".gitignore").write_text("private/\nkeys/\n", encoding="utf-8")
    (folder / "link").symlink_to("private/a.txt")
    for words in (("init", "-q"), ("add", "src", "docs", "tests")):
        subprocess.run(("git", *words), cwd=folder, check=True)
    return folder


@pytest.fixture
def judge(workspace: Path) -> Judge:
    def run(command: str, rules: Rules, mode: Mode = "ask") -> Decision:
        return decide(
            "shell",
            "execute",
            {"command": command},
            workspace=workspace,
            mode=mode,
            rules=rules,
            headless=False,
        )

    return run


@pytest.mark.parametrize("command", NAMES_THE_FILE)
def test_a_rule_that_allows_a_command_lifts_no_deny_rule_about_a_file_that_it_names(
    judge: Judge, command: str
):
    rules = parse_rules(allow=["shell"], deny=["read(src/app.py)"])
    assert judge(command, rules).verdict == "deny"
    assert judge(command, rules, "auto").verdict == "deny"


@pytest.mark.parametrize("command", MAY_NAME_IT)
def test_what_is_only_known_when_it_runs_is_asked_about(judge: Judge, command: str):
    decision = judge(command, parse_rules(allow=["shell"], deny=["read(src/app.py)"]))
    assert decision.verdict == "ask"
    assert "whether the deny rule read(src/app.py)" in decision.reason


@pytest.mark.parametrize("command", NAMES_OTHERS)
def test_commands_that_name_other_files_stay_allowed(judge: Judge, command: str):
    assert judge(command, parse_rules(allow=["shell"], deny=["read(src/app.py)"])).verdict == "allow"


def test_an_ask_rule_about_a_file_beats_a_rule_that_allows_the_command(judge: Judge):
    rules = parse_rules(allow=["shell(cat *)"], ask=["read(src/app.py)"])
    assert judge("cat src/app.py", rules).verdict == "ask"


def test_a_deny_rule_about_a_file_beats_a_rule_that_is_the_line_word_for_word(judge: Judge):
    deny = parse_rules(deny=["read(src/app.py)"])
    assert judge("cat src/app.py", deny + parse_rules(allow=["shell(cat src/app.py)"])).verdict == "deny"
    given = Rules((exact_shell_rule("cat src/app.py | head"),))
    assert judge("cat src/app.py | head", deny + given).verdict == "deny"


def test_a_line_that_a_person_allowed_word_for_word_is_not_doubted(judge: Judge):
    rules = parse_rules(allow=['shell(cat "$F")'], deny=["read(src/app.py)"])
    assert judge('cat "$F"', rules).verdict == "allow"


@pytest.mark.parametrize(
    "command", ["cp src/app.py tests/new", "black tests/k.pem", "sed -i s/a/b/ tests/k.pem"]
)
def test_rules_for_writing_hold_for_what_may_write(judge: Judge, command: str):
    rules = parse_rules(allow=["shell"], deny=["write(tests/**)"])
    assert judge(command, rules).verdict == "deny"


@pytest.mark.parametrize(
    "command",
    ["pytest tests/test_app.py", "bash tests/run.sh", "cat tests/x", "less tests/x", "git add tests/x"],
)
def test_rules_for_writing_leave_what_only_reads_alone(judge: Judge, command: str):
    rules = parse_rules(allow=["shell"], deny=["write(tests/**)"])
    assert judge(command, rules).verdict == "allow"


def test_a_check_that_names_a_protected_file_may_be_run(judge: Judge):
    rules = parse_rules(deny=["write(tests/**)"]) + Rules((exact_shell_rule("./verify tests/x"),))
    assert judge("./verify tests/x", rules).verdict == "allow"


def test_in_mode_auto_rules_for_reading_hold_too(judge: Judge):
    assert judge("less src/app.py", parse_rules(deny=["read(src/app.py)"]), "auto").verdict == "deny"


@pytest.mark.parametrize("command", READS_PRIVATE)
def test_a_folder_is_not_read_over_the_head_of_a_rule(judge: Judge, command: str):
    decision = judge(command, parse_rules(allow=["shell"], deny=["read(private/**)"]))
    assert decision.verdict in {"ask", "deny"}
    assert decision.rule == "read(private/**)"
    assert judge(command, parse_rules(deny=["read(private/**)"]), "auto").verdict != "allow"


@pytest.mark.parametrize("command", LEAVES_PRIVATE_OUT)
def test_a_command_that_leaves_the_files_of_a_rule_out_is_allowed(judge: Judge, command: str):
    assert judge(command, parse_rules(allow=["shell"], deny=["read(private/**)"])).verdict == "allow"


def test_the_reason_names_a_file_and_how_to_leave_it_out(judge: Judge):
    rules = parse_rules(deny=["read(private/**)", "read(*.pem)"])
    assert "private/a.txt; leave it out with --exclude-dir='private'" in judge("grep -r x .", rules).reason
    assert "tests/k.pem; leave it out with -g '!*.pem'" in judge("rg x tests", rules).reason


def test_a_rule_about_files_that_are_not_there_changes_nothing(judge: Judge):
    rules = parse_rules(deny=["read(nowhere/**)", "read(*.nothing)"])
    assert judge("grep -rn x src", rules).verdict == "allow"


def test_more_files_than_are_looked_at_count_as_may(tmp_path: Path):
    for number in range(5_001):
        (tmp_path / str(number)).touch()
    decision = decide(
        "shell", "execute", {"command": "grep -r x ."}, workspace=tmp_path, mode="ask",
        rules=parse_rules(deny=["read(*.nothing)"]), headless=False,
    )  # fmt: skip
    assert decision.verdict == "ask"
    assert "too many files" in decision.reason


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("rg x", "ask"), ("git grep x", "ask"), ("grep -r x .", "ask"), ("rg -uu x", "ask"),
        ("grep -r x src", "allow"),        ("rg -g '!*.pem' x", "allow"),
        ("git grep x -- ':!*.pem'", "allow"), ("rg x src", "allow"),
        ("grep -rn x . --exclude='*.pem' --exclude=.env --exclude=id_rsa", "allow"), ("git diff", "allow"),
        ("rg -t py x", "allow"), ("ls | rg x", "allow"), ("git grep x src", "allow"), ("ls -R", "allow"),
    ],
)  # fmt: skip
def test_files_with_secrets_below_a_folder_are_asked_about_where_they_are_read(
    judge: Judge, command: str, verdict: str
):
    assert judge(command, Rules()).verdict == verdict


@pytest.mark.timeout(60)
def test_an_ignore_file_or_index_that_is_a_pipe_is_not_waited_for(tmp_path: Path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "k.pem").touch()
    for name in (".gitignore", ".git/index"):
        os.mkfifo(tmp_path / name)
    for command in ("rg x", "git grep x"):
        decision = decide(
            "shell", "execute", {"command": command}, workspace=tmp_path, mode="ask", rules=Rules(),
            headless=False,
        )  # fmt: skip
        assert decision.verdict == "ask"


def test_the_reason_names_all_secrets_that_are_to_be_left_out(judge: Judge):
    reason = judge("grep -r x .", Rules()).reason
    assert "reads .env, which looks like a file with secrets" in reason
    assert all(option in reason for option in ("--exclude='.env'", "--exclude='id_rsa'", "--exclude='k.pem'"))


def test_what_installed_packages_bring_is_no_secret(tmp_path: Path):
    bundle = tmp_path / ".venv" / "lib" / "cacert.pem"
    bundle.parent.mkdir(parents=True)
    bundle.touch()
    decision = decide(
        "shell", "execute", {"command": "grep -r x ."}, workspace=tmp_path, mode="ask", rules=Rules(),
        headless=False,
    )  # fmt: skip
    assert decision.verdict == "allow"


def test_the_suggested_rule_allows_reading_a_folder_with_secrets(judge: Judge):
    suggestion = judge("rg x", Rules()).suggested_rule
    assert judge("rg x", parse_rules(allow=[suggestion])).verdict == "allow"


def test_many_files_are_judged_as_the_tool_read_is(workspace: Path):
    def ask(name: str, rules: Rules) -> bool:
        return may_read(workspace / name, workspace=workspace, mode="ask", rules=rules)

    rules = parse_rules(deny=["read(private/**)"], ask=["read(docs/**)"])
    assert ask("src/app.py", rules)
    assert not any(ask(name, rules) for name in ("private/a.txt", "docs/x.md", ".env", "link", "../other"))
    assert ask(".env", parse_rules(allow=["read(.env)"]))


def test_existing_files_of_deny_rules_are_found_for_the_sandbox(workspace: Path):
    rules = parse_rules(
        deny=[
            "read(private/**)",
            "read(*.pem)",
            "read(./docs/x.md)",
            "read(no/**)",
            "read(**)",
            "write(src/**)",
        ],
        ask=["read(src/**)"],
    )
    assert set(unreadable_places(rules, workspace)) == {
        workspace / name for name in ("private", "tests/k.pem", "docs/x.md")
    }

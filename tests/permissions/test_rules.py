from pathlib import Path

import pytest

from agent.core.errors import UsageError
from agent.permissions.context import Mode
from agent.permissions.rules import Rules, exact_shell_rule, parse_rule, parse_rules
from tests.permissions.conftest import Decide


def allow(*texts: str) -> Rules:
    return parse_rules(allow=texts, source="test")


@pytest.mark.parametrize(
    ("rule", "command", "fits"),
    [
        ("shell(git diff *)", "git diff", True),
        ("shell(git diff *)", "git diff --weird HEAD", True),
        ("shell(git diff *)", "git difftool", False),
        ("shell(git diff *)", "git", False),
        ("shell(git diff)", "git diff --weird", False),
        ("shell(rm -r build)", "rm -r build", True),
        ("shell(rm -r build)", 'rm  -r "build"', True),
        ("shell(rm -r build)", "rm -r build src", False),
        ("shell(rm -r 'my dir')", "rm -r my\\ dir", True),
        ("shell(rm *.tmp)", "rm x.tmp", True),
        ("shell(rm *.tmp)", "rm x.py", False),
        ("shell(rm '*.tmp')", "rm x.tmp", False),
        ("shell(rm ?.py)", "rm a.py", True),
        ("shell(* install)", "npm install", True),
        ("shell(* install)", "npm ci install", False),
        ("shell(rm *)", "/bin/rm x", False),
        ("shell(rm *)", "rmdir x", False),
        ("shell", "anything at all", True),
        ("shell(*)", "anything at all", True),
        ("*", "anything at all", True),
        ("sh*", "anything at all", True),
        ("edit(*)", "rm x", False),
    ],
)
def test_command_patterns_go_word_by_word(judge: Decide, rule: str, command: str, fits: bool) -> None:
    assert (judge("shell", command=command, rules=allow(rule)).verdict == "allow") is fits


@pytest.mark.parametrize(
    ("rule", "tool", "path", "fits"),
    [
        ("write(docs/**)", "write", "docs/a/b.md", True),
        ("write(docs/**)", "edit", "docs/guide.md", True),
        ("edit(docs/**)", "write", "docs/guide.md", False),
        ("write(docs/)", "write", "docs/a.md", True),
        ("write(docs/*)", "write", "docs/a/b.md", False),
        ("write(*.md)", "write", "docs/a/b.md", True),
        ("write(./*.md)", "write", "docs/b.md", False),
        ("write(docs/**)", "write", "docs/../src/app.py", False),
        ("write(docs/**)", "write", "docs2/a.md", False),
        ("edit(*)", "edit", "src/app.py", True),
        ("edit(*)", "edit", "../x", False),
        ("edit(*)", "edit", ".env", False),
        ("edit(**/.env)", "edit", ".env", True),
        ("write(src/[ab]*.py)", "write", "src/app.py", True),
        ("write(src/[!ab]*.py)", "write", "src/app.py", False),
        ("write(app/[id]/**)", "write", "app/[id]/page.tsx", True),
        ("write(app/[id]/**)", "write", "app/d/page.tsx", True),
        ("write(app/[id]/**)", "write", "app/id/page.tsx", False),
        ("write(app/[user-id]/**)", "write", "app/[user-id]/page.tsx", True),
        ("write(app/[[...slug]]/*.tsx)", "write", "app/[[...slug]]/page.tsx", True),
        ("write(**)", "write", "leads_out/x", False),
        ("*", "write", "/etc/x", True),
        ("*", "write", ".git/config", False),
        ("read(/etc/**)", "read", "/etc/hosts", True),
        ("read(/etc/**)", "read", "leads_out/passwd", False),
        ("read(/etc/*)", "read", "/etc/../root/x", False),
        ("read(.env)", "read", ".env", True),
        ("read(*)", "read", ".env", False),
        ("read(/etc/**)", "search", "/etc", True),
        ("search(/etc/**)", "read", "/etc/hosts", False),
    ],
)
def test_path_patterns_are_about_the_real_file(
    judge: Decide, rule: str, tool: str, path: str, fits: bool
) -> None:
    assert (judge(tool, path=path, rules=allow(rule)).verdict == "allow") is fits


def test_a_home_folder_in_a_pattern_is_the_persons(judge: Decide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    rules = allow("read(~/notes/**)")
    assert judge("read", path="~/notes/a", rules=rules).verdict == "allow"
    assert judge("read", path="/home/me/notes/a", rules=rules).verdict == "allow"
    assert judge("read", path="~/other", rules=rules).verdict == "ask"
    assert judge("shell", command="cat ~/notes/a", rules=rules).verdict == "allow"


def test_deny_beats_ask_and_ask_beats_allow_in_any_order_of_layers(judge: Decide) -> None:
    allowing, asking = allow("shell(pytest *)"), parse_rules(ask=["shell(pytest *)"], source="test")
    denying = parse_rules(deny=["shell(pytest *)"], source="test")
    for rules in (allowing + asking, asking + allowing):
        assert judge("shell", command="pytest -q", rules=rules, mode="auto").verdict == "ask"
    for rules in (allowing + asking + denying, denying + asking + allowing):
        assert judge("shell", command="pytest -q", rules=rules, mode="auto").verdict == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "ls && git push -f",
        "git -C src push",
        "git --no-pager push",
        "git -c a.b=c push",
        "/usr/bin/git push",
        "env git push",
        "sudo git push",
        "bash -c 'git push'",
        "echo $(git push)",
        "timeout 5 nice git push origin main",
        "xargs git push",
        "find . -exec git push ';'",
        "npx git push",
        "busybox git push",
        "script -c 'git push' x",
    ],
)
def test_a_deny_rule_holds_in_chains_and_behind_wrappers(judge: Decide, command: str) -> None:
    rules = parse_rules(allow=["*"], deny=["shell(git push *)"], source="test")
    assert judge("shell", command=command, rules=rules, mode="auto").verdict == "deny"


@pytest.mark.parametrize(
    "command", ["git $x", "$x push", "git pus*", "eval $x", "echo a | sh", "ls 'x", "xargs git"]
)
def test_where_a_deny_rule_may_fit_a_person_is_asked(judge: Decide, command: str) -> None:
    rules = parse_rules(allow=["*"], deny=["shell(git push *)"], source="test")
    decision = judge("shell", command=command, rules=rules, mode="auto")
    assert decision.verdict == "ask"
    assert decision.suggested_rule is None


def test_rules_about_files_hold_for_shell_commands_too(judge: Decide) -> None:
    rules = parse_rules(deny=["read(src/**)", "write(docs/**)"], source="test")
    assert judge("shell", command="cat src/app.py", rules=rules).verdict == "deny"
    assert judge("shell", command="ls < src/app.py", rules=rules).verdict == "deny"
    assert judge("shell", command="echo x > docs/a", rules=rules, mode="auto").verdict == "deny"
    assert judge("shell", command="cp build/x docs/a", rules=rules, mode="auto").verdict == "deny"


@pytest.mark.parametrize("folder", ["[id]", "[user-id]", "[[...slug]]", "[!x]"])
def test_a_deny_rule_holds_for_a_folder_that_has_brackets_in_its_name(judge: Decide, folder: str) -> None:
    rules = parse_rules(deny=(f"read(app/{folder}/**)",), source="test")
    assert judge("read", path=f"app/{folder}/keys.ts", rules=rules).verdict == "deny"
    assert judge("shell", command=f"cat 'app/{folder}/keys.ts'", rules=rules).verdict == "deny"


def test_a_deny_rule_meets_a_file_under_any_of_its_names(judge: Decide) -> None:
    rules = parse_rules(deny=["read(.env)", "read(leads_out/**)"], source="test")
    for path in (".env", "./src/../.env", "secret_link", ".ENV", "leads_out/passwd"):
        assert judge("read", path=path, rules=rules).verdict == "deny", path


def test_an_allow_rule_for_a_wrapper_alone_does_not_cover_what_it_starts(judge: Decide) -> None:
    assert judge("shell", command="timeout 5 rm x", rules=allow("shell(timeout *)")).verdict == "ask"
    assert judge("shell", command="timeout 5 rm x", rules=allow("shell(timeout 5 rm *)")).verdict == "allow"
    assert judge("shell", command="timeout 5 rm x", rules=allow("shell(rm *)")).verdict == "allow"


def test_an_allow_rule_does_not_cover_what_an_argument_runs(judge: Decide) -> None:
    assert judge("shell", command="mytool $(rm x)", rules=allow("shell(mytool *)")).verdict == "ask"
    assert judge("shell", command="mytool > /etc/x", rules=allow("shell(mytool *)")).verdict == "ask"
    assert judge("shell", command="PATH=. mytool", rules=allow("shell(mytool *)")).verdict == "ask"


def test_plan_mode_stays_read_only_whatever_is_allowed(judge: Decide) -> None:
    assert judge("shell", command="rm x", rules=allow("*"), mode="plan").verdict == "deny"
    assert judge("write", path="x", rules=allow("*"), mode="plan").verdict == "deny"


CHECK = "cd src && python -m pytest -q --weird-option=/tmp/x > /tmp/out 2>&1; mytool 'a b'"


@pytest.mark.parametrize(
    "command",
    [
        CHECK,
        f"  {CHECK}\n",
        "python -m pytest -q --weird-option=/tmp/x",
        "mytool 'a b'",
        'ls && mytool "a b" | tail -5',
        "python -m pytest -q --weird-option=/tmp/x > /tmp/out; mytool 'a b'",
    ],
)
def test_a_command_that_a_person_gave_is_allowed_and_so_are_its_parts(judge: Decide, command: str) -> None:
    assert judge("shell", command=command).verdict == "ask"
    rules = Rules((exact_shell_rule(CHECK),))
    assert judge("shell", command=command, rules=rules, headless=True).verdict == "allow"


@pytest.mark.parametrize(
    "command", ["mytool 'a c'", "mytool a b", "mytool", "ls > /tmp/other", f"{CHECK}; rm x", "mytool $x"]
)
def test_a_command_that_a_person_gave_allows_nothing_else(judge: Decide, command: str) -> None:
    assert judge("shell", command=command, rules=Rules((exact_shell_rule(CHECK),))).verdict == "ask"


def test_wildcards_in_a_command_that_a_person_gave_mean_nothing(judge: Decide) -> None:
    rules = Rules((exact_shell_rule("mytool *"),))
    assert judge("shell", command="mytool *", rules=rules).verdict == "allow"
    assert judge("shell", command="mytool src", rules=rules).verdict == "ask"


def test_a_deny_rule_beats_a_command_that_a_person_gave(judge: Decide) -> None:
    rules = parse_rules(allow=[exact_shell_rule("mytool x")], deny=["shell(mytool *)"], source="test")
    assert judge("shell", command="mytool x", rules=rules).verdict == "deny"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("shel(pytest *)", "shell(pytest *)"),
        ("reed(x)", "read(x)"),
        ("finish(x)", "finish"),
        ("shell(pytest", "shell(make *)"),
        ("shell()", "shell"),
        ("", "TOOL"),
        ("two words", "edit(*)"),
        ("shell('a)", "quote"),
        ("shell(git diff:*)", "shell(git diff *)"),
        (7, "TOOL"),
    ],
)
def test_a_rule_that_cannot_be_read_is_named_with_its_place(text: object, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rule(text, "allow", "config.toml, permissions.allow")
    assert "config.toml, permissions.allow" in caught.value.message
    assert repr(text) in caught.value.message
    assert hint in caught.value.hint
    assert "\n" not in caught.value.message


def test_the_decision_names_the_rule_and_its_source(judge: Decide) -> None:
    rules = parse_rules(deny=["shell(rm *)"], source="the task file")
    decision = judge("shell", command="rm x", rules=rules)
    assert decision.rule == "shell(rm *)"
    assert "the task file" in decision.reason


@pytest.mark.parametrize("mode", ["ask", "accept-edits", "auto", "plan"])
def test_a_rule_for_find_says_nothing_of_the_folders_that_execdir_runs_in(
    judge: Decide, workspace: Path, mode: Mode
) -> None:
    command = f"find {workspace} -maxdepth 0 -execdir cat notes ';'"
    rules = parse_rules(allow=["shell(find *)", "shell(cat *)"], source="test")
    assert judge("shell", command=command, mode=mode, rules=rules).verdict == "ask"
    word_for_word = parse_rules(allow=[f"shell({command})"], source="test")
    assert judge("shell", command=command, mode="ask", rules=word_for_word).verdict == "allow"


@pytest.mark.parametrize("rule", ["read(src)", "read(./src)", "read(src/)", "read(SRC)", "read(docs/../src)"])
def test_a_rule_that_denies_a_folder_denies_what_is_in_it(judge: Decide, rule: str) -> None:
    rules = parse_rules(deny=[rule], source="test")
    assert judge("read", path="src/app.py", rules=rules).verdict == "deny"
    assert judge("shell", command="cat src/app.py", rules=rules).verdict == "deny"
    assert judge("shell", command="grep -r x .", rules=rules).verdict == "ask"
    assert judge("read", path="docs/guide.md", rules=rules).verdict == "allow"


def test_a_rule_that_allows_a_folder_by_its_name_allows_nothing_in_it(judge: Decide) -> None:
    rules = parse_rules(allow=["write(docs)"], source="test")
    assert judge("write", path="docs/guide.md", rules=rules).verdict == "ask"


def test_two_stars_at_the_end_of_a_command_let_any_words_follow(judge: Decide) -> None:
    rules = parse_rules(deny=["shell(rm **)"], source="test")
    assert judge("shell", command="rm -rf build", rules=rules).verdict == "deny"


@pytest.mark.parametrize(
    ("rule", "hint"),
    [
        ("Read", "did you mean read?"),
        ("Bash", "did you mean shell?"),
        ("Bash(rm *)", "did you mean shell(rm *)?"),
        ("Edit(src/**)", "did you mean edit(src/**)?"),
        ('read("src/app.py")', "write read(src/app.py)"),
        ("read('src/**')", "write read(src/**)"),
    ],
)
def test_a_rule_that_would_hold_nothing_is_an_error(rule: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rule(rule, "deny", "test")
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    "rule", ["mcp__github__*", "mcp__github", "mcp__github__push", "mcp__*", "github__*"]
)
def test_a_rule_that_denies_tools_of_a_server_also_holds_by_the_name_that_others_have_for_them(
    judge: Decide, rule: str
) -> None:
    rules = parse_rules(allow=["github__*", "files__*", "read"], deny=[rule], source="test")
    assert judge("github__push", "execute", rules=rules).verdict == "deny"
    assert judge("read", path="src/app.py", rules=rules).verdict == "allow"
    assert (judge("files__push", "execute", rules=rules).verdict == "deny") == (rule == "mcp__*")


def test_a_rule_by_that_name_allows_nothing(judge: Decide) -> None:
    rules = parse_rules(allow=["mcp__github__push"], source="test")
    assert judge("github__push", "execute", rules=rules).verdict == "ask"

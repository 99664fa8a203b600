import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from agent.permissions.context import MODES, Mode
from agent.permissions.rules import Rules, parse_rules
from tests.permissions.conftest import Decide


@pytest.mark.parametrize("tool", ["read", "search", "glob"])
@pytest.mark.parametrize("mode", MODES)
def test_reading_in_the_workspace_needs_no_question(judge: Decide, tool: str, mode: Mode) -> None:
    assert judge(tool, path="src/app.py", mode=mode).verdict == "allow"


@pytest.mark.parametrize("tool", ["search", "glob"])
def test_searching_without_a_path_means_the_workspace(judge: Decide, tool: str) -> None:
    assert judge(tool, pattern="x").verdict == "allow"


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".env.local",
        ".ENV",
        "src/.envrc",
        "server.pem",
        "id_rsa",
        "id_ed25519.pub",
        "private.key",
        ".netrc",
        "credentials",
        "credentials.json",
        ".git-credentials",
        ".ssh/config",
        ".gnupg/x",
        ".aws/config",
        "secret_link",
        "src/../.env",
        "'.env'",
        " .env ",
        "`.env`",
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_reading_a_secret_asks(judge: Decide, path: str, mode: Mode) -> None:
    assert judge("read", path=path, mode=mode).verdict == "ask"


@pytest.mark.parametrize(
    "path",
    [".env.example", "id_generator.py", "keys.py", "credentials.py", "environment", "pem.md", ".gitignore"],
)
def test_names_that_only_resemble_secrets_are_plain_files(judge: Decide, path: str) -> None:
    assert judge("read", path=path).verdict == "allow"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x",
        "src/../../x",
        "~/x",
        "~nobody-of-this-name/x",
        "leads_out/passwd",
        "leads_out",
        "/",
        "..",
        "a\0b",
    ],
)
@pytest.mark.parametrize("tool", ["read", "search", "glob"])
@pytest.mark.parametrize("mode", MODES)
def test_outside_the_workspace_every_mode_asks(judge: Decide, path: str, tool: str, mode: Mode) -> None:
    assert judge(tool, path=path, mode=mode).verdict == "ask"


def test_going_up_through_a_link_is_judged_by_where_it_really_leads(judge: Decide) -> None:
    assert judge("read", path="leads_out/../src/app.py").verdict == "ask"
    assert judge("read", path="leads_out/../workspace/src/app.py").verdict == "allow"


def test_an_absolute_path_into_the_workspace_is_inside(judge: Decide, workspace: Path) -> None:
    assert judge("read", path=str(workspace / "src/app.py")).verdict == "allow"


def test_a_workspace_that_is_reached_by_a_link_is_still_the_workspace(tmp_path: Path, judge: Decide) -> None:
    from agent.permissions.gate import decide

    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for path in ("x", str(tmp_path / "link/x"), str(tmp_path / "real/x")):
        decision = decide(
            "write",
            "write",
            {"path": path},
            workspace=tmp_path / "link",
            mode="auto",
            rules=Rules(),
            headless=True,
        )
        assert decision.verdict == "allow", path


@pytest.mark.parametrize("tool", ["write", "edit"])
@pytest.mark.parametrize(
    ("mode", "verdict"), [("ask", "ask"), ("accept-edits", "allow"), ("auto", "allow"), ("plan", "deny")]
)
def test_writing_in_the_workspace_depends_on_the_mode(
    judge: Decide, tool: str, mode: Mode, verdict: str
) -> None:
    assert judge(tool, path="src/new.py", mode=mode).verdict == verdict


@pytest.mark.parametrize("path", ["/tmp/x", "../x", "leads_out/x", ".env", "secret_link"])
@pytest.mark.parametrize("mode", ["ask", "accept-edits", "auto"])
def test_writing_outside_or_over_secrets_asks(judge: Decide, path: str, mode: Mode) -> None:
    assert judge("write", path=path, mode=mode).verdict == "ask"


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".git",
        ".GIT/hooks/x",
        "src/.git/config",
        ".agent/config.toml",
        ".agent/new",
        "src/../.agent/x",
        "settings_link",
        "`.git/config`",
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_settings_and_git_files_are_never_written(judge: Decide, path: str, mode: Mode) -> None:
    for tool in ("write", "edit"):
        decision = judge(tool, path=path, mode=mode, rules=parse_rules(allow=["*"], source="test"))
        assert decision.verdict == "deny"
        assert decision.suggested_rule is None


def test_protected_folders_are_never_written_but_may_be_read_by_rule(judge: Decide, tmp_path: Path) -> None:
    rules = parse_rules(allow=["*"], source="test")
    path = str(tmp_path / "config.toml")
    assert judge("write", path=path, rules=rules, protected=(tmp_path,)).verdict == "deny"
    assert (
        judge("shell", command=f"echo x > {path}", rules=rules, protected=(tmp_path,), mode="auto").verdict
        == "deny"
    )
    assert judge("read", path=path, rules=rules, protected=(tmp_path,)).verdict == "allow"


def test_a_tool_from_elsewhere_asks_unless_a_rule_is_about_it(judge: Decide) -> None:
    assert judge("mcp__web__fetch", "read", url="x", mode="auto").verdict == "ask"
    rules = parse_rules(allow=["mcp__web__*"], source="test")
    assert judge("mcp__web__fetch", "read", url="x", rules=rules).verdict == "allow"
    assert judge("mcp__web__fetch", "execute", url="x", rules=rules, mode="plan").verdict == "deny"
    assert (
        judge(
            "mcp__web__fetch", "read", url="x", rules=parse_rules(allow=["read", "shell"], source="t")
        ).verdict
        == "ask"
    )
    assert judge("mcp__web__put", "write", path=".git/config", rules=rules).verdict == "deny"


def test_ending_the_task_is_always_allowed(judge: Decide) -> None:
    for mode in MODES:
        assert (
            judge("finish", mode=mode, headless=True, rules=parse_rules(deny=["*"], source="t")).verdict
            == "allow"
        )


@pytest.mark.parametrize("arguments", [{}, {"path": ""}, {"path": None}, {"path": 7}])
def test_a_call_without_a_usable_path_is_never_a_free_pass(
    judge: Decide, arguments: dict[str, object]
) -> None:
    assert judge("write", **arguments).verdict == "ask"


@pytest.mark.parametrize("command", ["", "   ", "\n"])
def test_an_empty_command_asks(judge: Decide, command: str) -> None:
    assert judge("shell", command=command).verdict == "ask"


def test_without_a_person_asking_becomes_a_denial_that_says_what_would_help(judge: Decide) -> None:
    decision = judge("shell", command="rm -r build", mode="accept-edits", headless=True)
    assert decision.verdict == "deny"
    assert decision.suggested_rule == "shell(rm -r build)"
    assert decision.reason.startswith(
        'not allowed without a person: shell "rm -r build" '
        '(add allow = ["shell(rm -r build)"] to the task file or config)'
    )


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("shell", {"command": "mytool \"it's\" \\\\ \u2028 'é'"}),
        ("shell", {"command": "mytool a; othertool $x"}),
        ("shell", {"command": "mytool *.py [a] > /etc/x"}),
        ("read", {"path": "../[odd] *name"}),
        ("read", {"path": ".env"}),
        ("write", {"path": "/etc/x"}),
        ("mcp__a__b", {"x": 1}),
    ],
)
def test_the_rule_in_the_reason_is_toml_that_helps(
    judge: Decide, tool: str, arguments: dict[str, str]
) -> None:
    denied = judge(tool, mode="accept-edits", headless=True, **arguments)
    written = re.search(r"\(add (allow = \[.*\]) to the task file or config\)", denied.reason)
    assert written is not None
    rules = parse_rules(allow=tomllib.loads(written.group(1))["allow"], source="test")
    assert judge(tool, mode="accept-edits", headless=True, rules=rules, **arguments).verdict == "allow"


def test_a_suggested_rule_for_a_file_allows_no_other_file(judge: Decide) -> None:
    suggestion = judge("read", path="../a*").suggested_rule
    rules = parse_rules(allow=[suggestion], source="test")
    assert judge("read", path="../a*", rules=rules).verdict == "allow"
    assert judge("read", path="../ab", rules=rules).verdict == "ask"


def test_a_reason_is_one_line_of_reasonable_length(judge: Decide) -> None:
    decision = judge("shell", command="mytool a\nmytool " + "b" * 5000)
    assert "\n" not in decision.reason
    assert len(decision.reason) < 500


def test_nothing_helps_against_a_rule_that_asks(judge: Decide) -> None:
    rules = parse_rules(ask=["shell(*)"], source="the config")
    decision = judge("shell", command="pytest", mode="accept-edits", headless=True, rules=rules)
    assert decision.verdict == "deny"
    assert decision.suggested_rule is None
    assert "ask rule shell(*) from the config" in decision.reason


def test_tests_of_the_project_run_without_a_person_unless_switched_off(judge: Decide) -> None:
    assert judge("shell", command="pytest -q", headless=True).verdict == "allow"
    assert judge("shell", command="pytest -q", mode="plan", headless=True).verdict == "deny"
    switched_off = parse_rules(deny=["shell(pytest *)"], source="test")
    assert judge("shell", command="pytest -q", headless=True, rules=switched_off).verdict == "deny"


def test_wildcards_are_judged_by_the_files_they_find(judge: Decide, workspace: Path) -> None:
    folder = workspace / "wild"
    folder.mkdir()
    (folder / "a.txt").write_text("x", encoding="utf-8")
    assert judge("shell", command="cat wild/*").verdict == "allow"
    (folder / "link").symlink_to("/etc/passwd")
    assert judge("shell", command="cat wild/*").verdict == "ask"
    assert judge("shell", command="cat wild/*.txt").verdict == "allow"
    (folder / "--pre=x.txt").write_text("x", encoding="utf-8")
    assert judge("shell", command="cd wild && rg x *.txt").verdict == "ask"


def test_wildcards_over_files_that_the_line_itself_makes_ask(judge: Decide) -> None:
    assert judge("shell", command="echo x > new.txt; cat *.txt", mode="accept-edits").verdict == "ask"


def test_git_in_a_folder_that_looks_like_a_repository_of_its_own_asks(judge: Decide, workspace: Path) -> None:
    folder = workspace / "bare"
    folder.mkdir()
    assert judge("shell", command="git -C bare status").verdict == "allow"
    assert judge("shell", command="cd bare && git status").verdict == "allow"
    (folder / "HEAD").write_text("ref: refs/heads/main", encoding="utf-8")
    assert judge("shell", command="git -C bare status").verdict == "ask"
    assert judge("shell", command="cd bare && git status").verdict == "ask"


@pytest.mark.parametrize(
    "command", ["rm -rf inner", "rm -r ./inner/", "rm -rf inn*", "cd inner && rm -rf work"]
)
def test_removing_a_repository_of_its_own_asks_in_every_mode(judge: Decide, workspace: Path, command: str):
    # Its history is nowhere else, and undo knows files and no repositories.
    (workspace / "inner" / "work" / ".git").mkdir(parents=True, exist_ok=True)
    assert judge("shell", command=command, mode="auto").verdict == "ask"
    (workspace / "plain").mkdir(exist_ok=True)
    assert judge("shell", command="rm -rf plain", mode="auto").verdict == "allow"


@pytest.mark.parametrize("mode", ["accept-edits", "auto"])
def test_writing_a_file_that_has_other_names_asks(
    judge: Decide, workspace: Path, tmp_path: Path, mode: Mode
) -> None:
    (tmp_path / "outside.txt").write_text("x", encoding="utf-8")
    name = f"hard-{mode}.txt"
    (workspace / name).hardlink_to(tmp_path / "outside.txt")
    assert judge("edit", path=name, mode=mode).verdict == "ask"
    assert judge("shell", command=f"echo x > {name}", mode=mode).verdict == "ask"
    assert judge("read", path=name, mode=mode).verdict == "allow"
    rules = parse_rules(allow=[f"edit({name})"], source="test")
    assert judge("edit", path=name, mode=mode, rules=rules).verdict == "allow"


@pytest.mark.parametrize("mode", ["plan", "accept-edits"])
@pytest.mark.parametrize(
    "command", ["cat '\udcff/l/passwd'", "cd '\udcff'\ncat l/passwd", 'cat < "\udcff"/l/passwd']
)
def test_a_folder_whose_name_is_no_utf_8_hides_no_link_that_leads_out(
    tmp_path: Path, mode: Mode, command: str
):
    workspace = tmp_path / "workspace"
    (workspace / "\udcff").mkdir(parents=True)
    (workspace / "\udcff" / "l").symlink_to(tmp_path)
    (tmp_path / "passwd").touch()
    (workspace / "\udcff" / "plain").touch()

    from agent.permissions.gate import Decision, decide

    def decision(text: str) -> Decision:
        arguments = {"command": text}
        return decide(
            "shell", "execute", arguments, workspace=workspace, mode=mode, rules=Rules(), headless=False
        )

    asked = decision(command)
    assert asked.verdict == "ask"
    assert (asked.suggested_rule or "").isprintable()  # half a character is not
    assert asked.reason.encode("utf-8").endswith(b"l/passwd is outside the workspace")
    assert decision(command.replace("l/passwd", "plain")).verdict == "allow"


def test_only_shell_commands_load_the_shell_grammar() -> None:
    script = """
import sys
from pathlib import Path
from agent.permissions.gate import decide
from agent.permissions.rules import parse_rules
rules = parse_rules(allow=["shell(pytest *)", "edit(*)"], source="test")
for tool, access in (("read", "read"), ("edit", "write"), ("finish", "finish"), ("mcp", "execute")):
    decide(tool, access, {"path": "x"}, workspace=Path.cwd(), mode="ask", rules=rules, headless=True)
assert not [name for name in sys.modules if "tree_sitter" in name]
decide("shell", "execute", {"command": "ls"}, workspace=Path.cwd(), mode="ask", rules=rules, headless=True)
assert "tree_sitter_bash" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[2])

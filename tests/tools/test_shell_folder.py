"""A command starts where the last one ended, within the workspace."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.tool import ToolContext
from agent.permissions.gate import decide
from agent.permissions.rules import Rules, parse_rules
from tests.tools.shelling import Shell, opened
from tools.shell import ShellParams


@pytest.fixture
async def shell(context: ToolContext, workspace: Path) -> AsyncIterator[Shell]:
    (workspace / "sub dir").mkdir()
    async for shell in opened(context):
        yield shell


async def test_the_folder_is_kept_and_told(shell: Shell, workspace: Path):
    assert (await shell("cd 'sub dir'; echo a")).model_text == "a\nexit code 0 (now in sub dir)"
    assert (await shell("pwd")).model_text == f"{workspace}/sub dir\nexit code 0 (in sub dir)"
    assert (await shell("cd ..")).model_text == "(no output)\nexit code 0 (now in .)"
    assert (await shell("pwd")).model_text == f"{workspace}\nexit code 0"


@pytest.mark.parametrize(
    "command", ["cd 'sub dir'; exit 3", "set -e; cd 'sub dir'; false", "cd 'sub dir'; ls nothing"]
)
async def test_it_is_kept_however_the_command_ends(shell: Shell, command: str):
    assert (await shell(command)).model_text.endswith("(now in sub dir)")


@pytest.mark.parametrize("command", ["(cd 'sub dir')", "bash -c 'cd \"sub dir\"'", "cd nothing 2>/dev/null"])
async def test_what_happens_in_a_shell_within_does_not_count(shell: Shell, command: str):
    assert "now in" not in (await shell(command)).model_text


async def test_leaving_the_workspace_lasts_for_one_command(shell: Shell, workspace: Path):
    await shell("cd 'sub dir'")

    result = await shell("cd /; pwd")

    assert result.model_text == "/\nexit code 0 (the next command starts in the workspace again)"
    assert (await shell("pwd")).model_text == f"{workspace}\nexit code 0"


async def test_a_link_that_leads_out_of_the_workspace_does_not_count(shell: Shell, workspace: Path):
    (workspace / "out").symlink_to(workspace.parent)

    assert "starts in the workspace again" in (await shell("cd out")).model_text


async def test_a_folder_that_was_deleted_is_left(shell: Shell, workspace: Path):
    await shell("mkdir gone; cd gone")
    (workspace / "gone").rmdir()

    assert (await shell("pwd")).model_text == f"{workspace}\nexit code 0"


async def test_a_fresh_start_is_in_the_workspace(shell: Shell, workspace: Path):
    await shell("cd 'sub dir'")
    shell.tool.start_over()

    assert (await shell("pwd")).model_text == f"{workspace}\nexit code 0"


async def test_nothing_of_it_is_seen_by_the_command(shell: Shell):
    assert (await shell("env | grep -E 'FOLDER_FD|BASH_ENV' || echo none")).model_text == "none\nexit code 0"
    assert "line 1:" in (await shell("nonsuch-command")).model_text
    assert "pwd" not in (await shell("set -x; true")).model_text


async def test_what_a_person_has_bash_read_first_is_still_read(context: ToolContext, tmp_path: Path):
    (tmp_path / "own.sh").write_text("greet() { echo hello; }\n", "utf-8")
    own = replace(context, environment={**context.environment, "BASH_ENV": str(tmp_path / "own.sh")})
    async for shell in opened(own):
        assert (await shell("greet; bash -c greet")).model_text == "hello\nhello\nexit code 0"


async def test_a_deny_rule_holds_in_the_folder_where_the_command_runs(shell: Shell, workspace: Path):
    (workspace / "sub dir/private.txt").write_text("secret\n", "utf-8")
    rules = parse_rules(allow=[], ask=[], deny=["read(sub dir/private.txt)"])
    await shell("cd 'sub dir'")

    meant = shell.tool.acts_as(ShellParams(command="cat private.txt"))

    assert meant is not None
    tool, arguments = meant
    decision = decide(
        tool.name, tool.access, arguments, workspace=workspace, mode="auto", rules=rules, headless=False
    )
    assert decision.verdict == "deny"


@pytest.mark.parametrize("name", ["-x", "-", "~", "a\nb"])
async def test_the_gate_finds_a_folder_with_an_odd_name(shell: Shell, workspace: Path, name: str):
    (workspace / name).mkdir()
    (workspace / name / "file").touch()
    await shell(f"cd './{name}'")

    meant = shell.tool.acts_as(ShellParams(command="cat file"))

    assert meant is not None
    tool, arguments = meant
    decision = decide(
        tool.name, tool.access, arguments, workspace=workspace, mode="ask", rules=Rules(), headless=False
    )
    assert decision.verdict == "allow"

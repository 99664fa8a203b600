"""What looks like a slash command and is none, before anything is begun."""

from pathlib import Path

import pytest

from agent.app.extras.slash import require_known_slash
from agent.core.errors import UsageError


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    commands = tmp_path / ".claude" / "commands"
    commands.mkdir(parents=True)
    (commands / "greet.md").write_text("Say hello.\n", "utf-8")
    (tmp_path / "notes").write_text("", "utf-8")
    return tmp_path


@pytest.mark.parametrize("text", ["/gret", "/gret hello", "/gre\n"])
def test_a_slip_is_refused_and_the_closest_name_is_told(workspace: Path, text: str):
    with pytest.raises(UsageError, match=r"no command or skill /gre") as refused:
        require_known_slash(text, workspace)
    assert refused.value.hint.startswith("did you mean /greet?")


def test_a_name_like_no_other_is_refused_with_where_to_look(workspace: Path):
    with pytest.raises(UsageError) as refused:
        require_known_slash("/zzzzzz", workspace)
    assert refused.value.hint.startswith("`agent skills list`")


@pytest.mark.parametrize(
    "text",
    [
        "/greet hello",
        "/write-a-commit-message",
        " /gret hello",
        "/tmp is full",
        "/notes is empty",
        "/ect/hosts is wrong",
        "/gret hello\nand more",
        "/* a comment */",
        "/",
    ],
)
def test_what_is_known_or_no_command_is_let_through(workspace: Path, text: str):
    require_known_slash(text, workspace)

"""Custom commands: which there are, and what becomes of them with arguments."""

from pathlib import Path

import pytest

from agent.skills.commands import MOST_COMMANDS, FoundCommands, command_folders, expand, find_commands


def find(root: Path, *personal: Path) -> FoundCommands:
    return find_commands(command_folders(root, root, personal))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


@pytest.mark.parametrize(
    ("body", "arguments", "text"),
    [
        ("Fix $ARGUMENTS now.", "the bug", "Fix the bug now."),
        ("Move $1 to $2.", "a.py 'b c.py'", "Move a.py to b c.py."),
        ("Move $1 to $2.", "a.py", "Move a.py to ."),
        ("Say $1.", "$2 x", "Say $2."),
        ("Costs $100 and $PATH.", "", "Costs $100 and $PATH."),
        ("Look.", "at this", "Look.\n\nArguments: at this"),
        ("Look.", "", "Look."),
        ("Say $1.", "it's", "Say it's."),
        ("$ARGUMENTS", r"back\slash \1", r"back\slash \1"),
    ],
)
def test_arguments_are_filled_in(body: str, arguments: str, text: str):
    assert expand(body, arguments) == text


def test_command_has_the_name_of_its_file_and_folder(tmp_path: Path):
    write(tmp_path / ".claude/commands/db/Migrate Now.md", "Do it.")
    command = find(tmp_path).commands[0]
    assert (command.name, command.description, command.body) == ("db:migrate-now", "Do it.", "Do it.")


def test_front_matter_describes_it(tmp_path: Path):
    text = "\ufeff---\r\ndescription: Fixes: it\r\nargument-hint: [issue] [branch]\r\n---\r\nFix $1.\r\n"
    write(tmp_path / ".agent/commands/fix.md", text)
    command = find(tmp_path).commands[0]
    assert (command.description, command.takes, command.body) == ("Fixes: it", "[issue] [branch]", "Fix $1.")


def test_own_folder_of_the_program_comes_first(tmp_path: Path):
    write(tmp_path / ".claude/commands/same.md", "Theirs.")
    write(tmp_path / ".agent/commands/same.md", "Ours.")
    assert [command.body for command in find(tmp_path).commands] == ["Ours."]


def test_command_of_a_project_that_is_not_trusted_does_not_hide_one_of_the_person(tmp_path: Path):
    write(tmp_path / ".agent/commands/same.md", "Theirs.")
    write(tmp_path / "own/same.md", "Mine.")
    found = find(tmp_path, tmp_path / "own")
    assert [(command.body, command.trusted) for command in found.commands] == [("Mine.", True)]
    assert [(command.body, command.trusted) for command in found.shadowed] == [("Theirs.", False)]


def test_trusted_command_of_a_project_is_nearer_than_one_of_the_person(tmp_path: Path):
    write(tmp_path / ".agent/commands/same.md", "Theirs.")
    write(tmp_path / "own/same.md", "Mine.")
    folders = command_folders(tmp_path, tmp_path, [tmp_path / "own"])
    assert [command.body for command in find_commands(folders, lambda _: True).commands] == ["Theirs."]


def test_a_project_with_very_many_commands_leaves_room_for_those_of_the_person(tmp_path: Path):
    for number in range(MOST_COMMANDS + 1):
        write(tmp_path / f".agent/commands/c{number}.md", "x")
    write(tmp_path / "own/mine.md", "Mine.")
    found = find(tmp_path, tmp_path / "own")
    assert len(found.commands) == MOST_COMMANDS + 1
    assert found.get("mine") is not None
    assert len(found.problems) == 1


@pytest.mark.parametrize(
    "text", ["", "---\ndescription: [\n---\nx", "\0binary", "---\nopen: yes\n", "x" * 300_000]
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str):
    write(tmp_path / ".agent/commands/bad.md", text)
    write(tmp_path / ".agent/commands/good.md", "Good.")
    found = find(tmp_path)
    assert [command.name for command in found.commands] == ["good"]
    assert "bad.md" in found.problems[0]


def test_link_out_of_the_folder_is_not_followed(tmp_path: Path):
    (tmp_path / "secret.md").write_text("secret")
    (tmp_path / ".agent/commands").mkdir(parents=True)
    (tmp_path / ".agent/commands/leak.md").symlink_to(tmp_path / "secret.md")
    assert find(tmp_path).commands == ()

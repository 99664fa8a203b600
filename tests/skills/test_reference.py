"""Skills of the program, and our check, against the validator of the specification itself."""

from pathlib import Path

import pytest
from skills_ref import validate

from agent.resources import skills_folder
from agent.skills.validate import problems_of

BUNDLED = sorted(file.parent for file in skills_folder().glob("*/SKILL.md"))
WRONG = {
    "no-description": "---\nname: no-description\n---\nText\n",
    "not-closed": "---\nname: not-closed\ndescription: Does it.\nText\n",
    "no-matter": "Text\n",
    "other-name": "---\nname: another-name\ndescription: Does it.\n---\nText\n",
    "capitals": "---\nname: Capitals\ndescription: Does it.\n---\nText\n",
    "two--hyphens": "---\nname: two--hyphens\ndescription: Does it.\n---\nText\n",
    "unknown-key": "---\nname: unknown-key\ndescription: Does it.\ncolour: red\n---\nText\n",
    "too-long": f"---\nname: too-long\ndescription: {'x' * 1025}\n---\nText\n",
}


@pytest.mark.parametrize("folder", BUNDLED, ids=lambda folder: folder.name)
def test_skill_of_the_program_follows_the_specification(folder: Path):
    assert validate(folder) == []


@pytest.mark.parametrize("name", WRONG)
def test_what_the_specification_refuses_our_check_refuses_too(tmp_path: Path, name: str):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "SKILL.md").write_text(WRONG[name], "utf-8")
    assert validate(folder)
    assert problems_of(folder)


def test_what_agent_skills_new_writes_follows_the_specification(tmp_path: Path):
    from agent.skills.place import create

    assert validate(create("a-new-one", tmp_path, "Does it: well.").parent) == []

"""What docs/ and README.md list is what the program has. docs/configuration.md has a test of its own."""

import re
from argparse import PARSER, ArgumentParser
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from agent.cli import server
from agent.cli.main import COMMANDS
from agent.core.errors import ExitCode
from agent.core.events import Event, TurnFinished, TurnReason
from agent.core.stats import StepStats
from agent.headless.jsonl import result_record, stats_record
from agent.headless.task import Task
from agent.server.profile import ModelCard
from agent.server.profile_files import load_profile

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "AGENTS.md", *sorted((ROOT / "docs").glob("*.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HEADLESS = (ROOT / "docs" / "headless.md").read_text(encoding="utf-8")
SMALL_MODELS = (ROOT / "docs" / "small-models.md").read_text(encoding="utf-8")

LINK = re.compile(r"\]\((?!https?:)([^)\s]*)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def codes_in_first_column(text: str) -> set[str]:
    """What stands in backticks in the first cells of all tables."""
    cells = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
    return {code for cell in cells for code in re.findall(r"`([^`]+)`", cell)}


def leads_somewhere(page: Path, link: str) -> bool:
    name, _, part = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists() or not part:
        return target.exists()
    return part in map(anchor, HEADING.findall(target.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path):
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not leads_somewhere(page, link)] == []


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {page for page in pages if f"]({page})" not in index} == set()


def test_every_file_that_the_architecture_names_is_there():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)`", text))
    assert {
        name for name in named if not (ROOT / name).exists() and not (ROOT / "agent" / name).exists()
    } == set()


def test_every_room_is_drawn_in_the_architecture():
    drawing = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("```")[1]
    rooms = {folder.parent.name for folder in (ROOT / "agent").glob("*/__init__.py")}
    assert rooms - set(re.findall(r"\w+", drawing)) == set()


def test_a_version_in_the_changelog_has_each_kind_of_change_once_and_in_order():
    kinds = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for version in text.split("\n## ")[1:]:
        found = re.findall(r"^### (.+)$", version, re.MULTILINE)
        assert found == [kind for kind in kinds if kind in found]


def test_every_command_is_in_the_readme():
    listed = " ".join(re.findall(r"^\| `(agent [^|]+) \|", README, re.MULTILINE))
    assert {name for name in COMMANDS if f"agent {name}" not in listed} == set()


def test_every_action_of_servers_is_in_the_readme():
    actions = ArgumentParser().add_subparsers()
    server.add_parser(actions)
    (choices,) = (one.choices for one in actions.choices["server"]._actions if one.nargs == PARSER)
    rows = re.findall(r"^\| (`agent server [^|]+) \|", README, re.MULTILINE)
    listed = {word for row in rows for code in re.findall(r"`([^`]+)`", row) for word in code.split()}
    assert set(choices or ()) - listed == set()


@pytest.mark.parametrize("text", [README, HEADLESS], ids=["README.md", "headless.md"])
def test_every_exit_code_is_listed(text: str):
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert listed == {int(code) for code in ExitCode}


def test_every_key_of_the_front_matter_is_listed():
    keys = {field.name for field in fields(Task)} - {"text"}
    assert keys <= codes_in_first_column(HEADLESS)


def test_every_field_of_a_result_is_listed():
    finished = TurnFinished(reason="done", answer="", detail="", steps=1, stats=StepStats())
    record = result_record(
        finished,
        exit_code=0,
        session_id="",
        changed=[],
        denied=[],
        check_passed=None,
        seconds=0.0,
        commit=None,
    )
    listed = codes_in_first_column(HEADLESS)
    assert set(record) | {"error", "hint"} <= listed
    assert {name for name in stats_record(StepStats()) if f"`{name}`" not in HEADLESS} == set()


def test_every_reason_for_an_end_is_listed():
    reasons = set(get_args(TurnReason)) - {"attempt_limit"}  # ends an attempt, never a run
    assert {reason for reason in reasons if f"`{reason}`" not in HEADLESS} == set()


@pytest.mark.parametrize("event", get_args(Event), ids=lambda event: event.__name__)
def test_every_event_is_listed_with_its_fields(event: type):
    by_name = {field.name: field for field in fields(event)}
    kind = by_name.pop("type").default
    rows = [
        row for row in HEADLESS.splitlines() if row.startswith("| ") and f"`{kind}`" in row.split(" | ")[0]
    ]
    assert len(rows) == 1
    assert {name for name in by_name if f"`{name}`" not in rows[0]} == set()


def shown_value(value: object) -> str:
    return "none" if value is None else str(value).lower()


def test_every_key_of_a_model_card_is_listed_with_its_default_and_an_example():
    card = load_profile("embedded", [ROOT / "server_profiles"]).model_card
    for name, field in ModelCard.model_fields.items():
        row = next(row for row in SMALL_MODELS.splitlines() if row.startswith(f"| `{name}` |"))
        listed = [cell.strip("`") for cell in row.split(" | ")[1:3]]
        assert listed == [shown_value(field.default), shown_value(getattr(card, name))]

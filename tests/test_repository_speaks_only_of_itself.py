"""What is published here must make sense to somebody who has nothing but the repository."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PUBLIC_INDEXES = {"pypi.org", "test.pypi.org", "files.pythonhosted.org"}


class Trace(NamedTuple):
    """A trace of the place where something was written, and an example that must be found."""

    name: str
    pattern: re.Pattern[str]
    example: str


# The examples are put together from two parts, so that this file holds none of them.
TRACES = [
    Trace(
        "folder of one machine",
        re.compile(r"(?<![\w.~/-])/(?:work|root)/\w"),
        "see /work" + "/main/README.md",
    ),
    Trace(
        "folder outside the repository",
        re.compile(r"(?<![\w/])(?:\.\./)+shared/"),
        "as in .." + "/shared/notes.md",
    ),
    Trace(
        "material outside the repository",
        re.compile(r"\bshared/(?:design|reference|field|m)"),
        "shared" + "/field/x",
    ),
    Trace(
        "local package index",
        re.compile(r"file:/{2,}\S*simple|/opt/(?:pypi|wheels)"),
        "file:///srv/pypi" + "/simple",
    ),
]
INDEX_HOST = re.compile(
    r"https?://([\w.-]*(?:pypi|pythonhosted|piwheels|artifactory|nexus|devpi)[\w-]*(?:\.[\w-]+)+)",
    re.IGNORECASE,
)


def tracked_texts() -> dict[str, str]:
    """Tracked files that are UTF-8 text, by their path in the repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this copy is no git checkout, so it cannot say which files are its own")
    texts = {}
    for name in listed.stdout.decode("utf-8").split("\0"):
        path = ROOT / name
        if name and path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if b"\0" not in data:
                texts[name] = data.decode("utf-8")
    return texts


def places(pattern: re.Pattern[str]) -> list[tuple[str, int, str]]:
    """File, line and what was found, for each match in a tracked text."""
    return [
        (name, text.count("\n", 0, match.start()) + 1, match[match.re.groups])
        for name, text in tracked_texts().items()
        for match in pattern.finditer(text)
    ]


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.name)
def test_no_file_points_to_the_place_where_it_was_written(trace: Trace):
    assert trace.pattern.search(trace.example)
    assert places(trace.pattern) == []


def test_only_public_package_indexes_are_named():
    assert INDEX_HOST.search("https://pypi." + "example.com/simple")
    assert [place for place in places(INDEX_HOST) if place[2].lower() not in PUBLIC_INDEXES] == []

"""Listing files, and finding the ones that a text mentions."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.repo.files import find_mentioned_files, list_files
from tests.repo.conftest import Git


def write(path: Path, data: bytes = b"x\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder outside of any repository."""
    tree = tmp_path / "tree"
    names = ("README.md", "Makefile", "run", "src/shapes/area.py", "src/text/wrap.py", "tests/test_area.py")
    for name in (*names, "src/shapes/util.py", "src/text/util.py", "with space/a b.txt"):
        write(tree / name)
    return tree


def mentioned(text: str, root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in find_mentioned_files(text, root)]


def test_in_a_repository_git_says_what_is_ignored(repo: Path) -> None:
    write(repo / "x.log")
    write(repo / "ignored" / "y")
    write(repo / "new.txt")
    (repo / "b.txt").unlink()
    assert list_files(repo) == [".gitignore", "a.txt", "new.txt", "src/c.txt"]
    assert list_files(repo / "src") == ["c.txt"]


def test_outside_of_a_repository_the_ignore_files_do(tree: Path) -> None:
    write(tree / ".gitignore", b"*.log\n/build/\n")
    write(tree / "src" / ".gitignore", b"*.tmp\n!keep.tmp\n")
    for name in ("a.log", "src/b.log", "build/x", "src/build/y", "src/c.tmp", "src/keep.tmp", "c.tmp"):
        write(tree / name)
    write(tree / "node_modules" / "left-pad" / "index.js")
    listed = list_files(tree)
    assert {"src/build/y", "src/keep.tmp", "c.tmp", "with space/a b.txt"} <= set(listed)
    assert not {"a.log", "src/b.log", "build/x", "src/c.tmp"} & set(listed)
    assert not any("node_modules" in name for name in listed)
    assert listed == sorted(listed)


def test_a_folder_that_a_repository_above_ignores_as_a_whole_is_still_listed(repo: Path) -> None:
    write(repo / "ignored" / "project" / "main.py")
    assert list_files(repo / "ignored" / "project") == ["main.py"]


def test_a_listing_is_bounded(repo: Path, tree: Path) -> None:
    for number in range(50):
        write(repo / f"{number}.txt")
    assert len(list_files(repo, 10)) == 10
    assert len(list_files(tree, 3)) == 3


def test_links_are_listed_but_not_followed(tree: Path) -> None:
    (tree / "loop").symlink_to(tree)
    assert "loop" in list_files(tree)
    assert not any(name.startswith("loop/") for name in list_files(tree))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fix src/shapes/area.py please", ["src/shapes/area.py"]),
        ("Fix `src/shapes/area.py`, then './README.md'.", ["src/shapes/area.py", "README.md"]),
        ("see area.py: it is wrong", ["src/shapes/area.py"]),
        ("see shapes/util.py", ["src/shapes/util.py"]),
        ("see util.py", []),
        ("tests/test_area.py::test_square fails", ["tests/test_area.py"]),
        ("src/text/wrap.py:12: error (see README.md#L3-L7)", ["src/text/wrap.py", "README.md"]),
        ("[the docs](README.md)", ["README.md"]),
        ("@README.md and @src/text/wrap.py", ["README.md", "src/text/wrap.py"]),
        ("The Makefile is old", ["Makefile"]),
        ("please run the tests in src", []),
        ("please `run` it", ["run"]),
        ('open "with space/a b.txt"', ["with space/a b.txt"]),
        ("`python src/text/wrap.py --help`", ["src/text/wrap.py"]),
        ("https://example.com/README.md", []),
        ("version 3.11, e.g. foo.bar() or ... and .", []),
        ("../other/README.md ../README.md /etc/passwd ~/.bashrc", []),
        ("wrap.py area.py wrap.py", ["src/text/wrap.py", "src/shapes/area.py"]),
        ("don't break area.py, isn't it", ["src/shapes/area.py"]),
        ("", []),
    ],
)
def test_mentions(tree: Path, text: str, expected: list[str]) -> None:
    assert mentioned(text, tree) == expected


def test_an_absolute_path_counts_only_inside(tree: Path, tmp_path: Path) -> None:
    write(tmp_path / "outside.py")
    assert mentioned(f"{tree}/README.md {tmp_path}/outside.py", tree) == ["README.md"]


def test_a_link_out_of_the_workspace_is_left_out(tree: Path, tmp_path: Path) -> None:
    write(tmp_path / "secret.txt")
    (tree / "inside.txt").symlink_to(tmp_path / "secret.txt")
    assert mentioned("inside.txt", tree) == []


def test_big_binary_and_gits_own_files_are_left_out(repo: Path) -> None:
    write(repo / "big.txt", b"x" * (64 * 1024 + 1))
    write(repo / "fits.txt", b"x" * (64 * 1024))
    write(repo / "image.png", b"\x89PNG\0")
    write(repo / "latin.txt", b"caf\xe9")
    text = "big.txt fits.txt image.png latin.txt .git/config src"
    assert mentioned(text, repo) == ["fits.txt"]


def test_at_most_twenty_files_are_found(tree: Path) -> None:
    names = [f"f{number}.py" for number in range(40)]
    for name in names:
        write(tree / name)
    assert mentioned(" ".join(names), tree) == names[:20]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text())
def test_no_text_makes_it_fail(tmp_path: Path, text: str) -> None:
    assert find_mentioned_files(text, tmp_path) == []


def test_a_repository_without_git_installed_is_listed_by_its_ignore_files(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    write(repo / "x.log")
    assert list_files(repo) == [".gitignore", "a.txt", "b.txt", "src/c.txt"]


def test_submodules_are_not_listed_as_files(repo: Path, git: Git, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "--quiet", "add", str(repo), "inner")
    assert list_files(outer) == [".gitmodules"]

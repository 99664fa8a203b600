"""Reads the files in `cases/`, and makes the workspace that they speak of."""

import tomllib
from pathlib import Path

CASES = Path(__file__).with_name("cases")
MODES = ("ask", "accept-edits", "auto", "plan")
VERDICTS = {"a": "allow", "?": "ask", "d": "deny"}
FILES = (
    "src/app.py", "src/util.py", "tests/test_app.py", "build/x", "docs/guide.md", "package.json",
    ".env", ".env.example", "server.pem", ".agent/config.toml", ".git/config", ".git/HEAD",
)  # fmt: skip
# these start programs by a language or an option of their own, which no reader of the command line can know
OWN_MEANS = (
    "awk",
    "sed",
    "python",
    "tar",
    "zip",
    "vim",
    "gdb",
    "git grep",
    "rg",
    "go ",
    "cargo",
    "rsync",
    "man",
    "sort",
)


def verdict_cases() -> list[tuple[str, dict[str, str]]]:
    """Command lines with the verdict that each mode should give."""
    cases = []
    for line in (CASES / "verdicts.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        letters, command = line.split(" || ", 1)
        cases.append(
            (command, dict(zip(MODES, (VERDICTS[letter] for letter in letters.split()), strict=True)))
        )
    return cases


def attacks() -> list[str]:
    """Command lines that must not be allowed without a person."""
    groups = tomllib.loads((CASES / "attacks.toml").read_text(encoding="utf-8"))
    return [command for commands in groups.values() for command in commands]


def make_workspace(folder: Path) -> Path:
    """A workspace in `folder`, with everything in it that the gate treats differently."""
    workspace, outside = folder / "workspace", folder / "outside"
    outside.mkdir()
    (outside / "passwd").write_text("x", encoding="utf-8")
    for name in FILES:
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")
    (workspace / "leads_out").symlink_to(outside)
    (workspace / "secret_link").symlink_to(".env")
    (workspace / "settings_link").symlink_to(".agent/config.toml")
    return workspace

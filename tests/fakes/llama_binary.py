"""Makes an executable `llama-server` that is the fake one, with given switches."""

import json
import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.llama_switches import PREFIX

_ROOT = Path(__file__).resolve().parents[2]
_WRAPPER = """\
#!{python} -IS
# a fake llama-server of the family {dialect}
import json, os, sys
sys.path.insert(0, {root!r})
with open({switches!r}, encoding="utf-8") as file:
    for name, value in json.load(file).items():
        os.environ.setdefault(name, value)
from tests.fakes.fake_llama_server import main
sys.exit(main(sys.argv[1:]))
"""


@dataclass(frozen=True, slots=True)
class FakeBinary:
    """An executable that can be told again, before its next start, what it shall do."""

    path: Path
    dialect: str

    @property
    def journal(self) -> Path:
        return self.path.with_name("starts.jsonl")

    @property
    def request_log(self) -> Path:
        return self.path.with_name("requests.jsonl")

    def tell(self, **switches: Any) -> "FakeBinary":
        """Sets all switches anew, see `tests.fakes.llama_switches.Switches`; what is left out is as usual."""
        files = {"journal": self.journal, "requests": self.request_log, "dialect": self.dialect}
        variables = {PREFIX + name.upper(): _text(value) for name, value in {**files, **switches}.items()}
        _switches_of(self.path).write_text(json.dumps(variables), "utf-8")
        return self

    def starts(self) -> list[dict[str, Any]]:
        """Every start so far: `pid`, `argv`, and `variables`, the names of those that llama.cpp reads."""
        return _lines(self.journal)

    def requests(self) -> list[dict[str, Any]]:
        """Every POST so far: `path` and `body`."""
        return _lines(self.request_log)


def make_llama_binary(folder: Path, dialect: str = "llama.cpp", **switches: Any) -> FakeBinary:
    """Writes `folder/llama-server`; `--help` and `--version` work, and starts are recorded beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "llama-server"
    text = _WRAPPER.format(
        python=sys.executable, dialect=dialect, root=str(_ROOT), switches=str(_switches_of(path))
    )
    path.write_text(text, "utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return FakeBinary(path, dialect).tell(**switches)


def write_model(path: Path, size: int = 64) -> Path:
    """A file that the fake takes for a model; nothing else would."""
    path.write_bytes(b"GGUF" + bytes(max(0, size - 4)))
    return path


def _switches_of(path: Path) -> Path:
    return path.with_name("switches.json")


def _text(value: Any) -> str:
    return (
        ("1" if value else "0")
        if isinstance(value, bool)
        else os.fspath(value)
        if isinstance(value, Path)
        else str(value)
    )


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]

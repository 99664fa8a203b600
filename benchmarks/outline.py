"""The map of a large tree of sources: the Python standard library with its tests, read once and asked again.

taskset -c 1 python -m benchmarks.outline --output benchmarks/results/outline.json
"""

import argparse
import asyncio
import json
import os
import resource
import sysconfig
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.core.tool import ToolContext
from tests.tools.ledger import MemoryLedger
from tools._outline.languages import language_of
from tools._outline.render import CHARACTERS_PER_TOKEN
from tools.outline import OutlineParams, OutlineTool

QUESTIONS = {
    "": "",
    "parse HTTP headers": "http/client.py",
    "event loop subprocess": "asyncio/base_subprocess.py",
    "JSON decoder": "json/decoder.py",
    "zip archive extraction": "zipfile.py",
    "compile regular expressions": "re/_compiler.py",
    "command line argument parser": "argparse.py",
    "ordered dictionary": "collections/__init__.py",
}
"""What is asked, and the file of CPython that somebody who knows it would open."""


def copied(source: Path, folder: Path) -> int:
    """Hard links to every source below `source`, without installed packages; the bytes of all."""
    size = 0
    for root, folders, files in os.walk(source):
        folders[:] = [name for name in folders if name not in ("site-packages", "__pycache__")]
        for name in files:
            path = Path(root) / name
            if language_of(name):
                target = folder / path.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
                size += target.stat().st_size
    return size


def used() -> float:
    """Processor seconds of this process and of the readers that it has started."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


async def asked(tool: OutlineTool, context: ToolContext, about: str) -> tuple[dict[str, Any], str]:
    began, before = time.monotonic(), used()
    result = await tool.run(OutlineParams(about=about), context)
    figures = {
        "about": about,
        "seconds": round(time.monotonic() - began, 2),
        "processor_seconds": round(used() - before, 2),
        "characters": len(result.model_text),
    }
    return figures, result.model_text


async def measured(folder: Path, cache: Path) -> tuple[list[dict[str, Any]], int]:
    context = ToolContext(
        workspace=folder,
        ledger=MemoryLedger(),
        spill_folder=cache,
        emit=lambda _: None,
        environment=dict(os.environ),
        cache_folder=cache,
    )
    rows, calls = [], 0
    tool = OutlineTool()
    while True:  # until everything is read
        row, text = await asked(tool, context, "")
        calls += 1
        rows.append({**row, "first": True})
        if "not read yet" not in text:
            break
    tool = OutlineTool()  # another session, which loads what was kept with its first question
    for about, wanted in QUESTIONS.items():
        row, text = await asked(tool, context, about)
        shown = [line for line in text.splitlines() if line[:1] not in (" ", "(")]
        place = shown.index(wanted) + 1 if wanted in shown else None
        rows.append({**row, "first": False, "wanted": wanted, "place": place})
    return rows, calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, cache = Path(place) / "lib", Path(place) / "cache"
        size = copied(Path(sysconfig.get_path("stdlib")), folder)
        files = sum(path.is_file() for path in folder.rglob("*"))
        rows, calls = asyncio.run(measured(folder, cache))
        kept = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
    own, others = (
        resource.getrusage(who).ru_maxrss // 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    result = {
        "files": files,
        "bytes": size,
        "calls_until_all_is_read": calls,
        "cache_bytes": kept,
        "largest_process_mib": {"agent": own, "reader": others},
        "characters_per_token": CHARACTERS_PER_TOKEN,
        "load": round(os.getloadavg()[0], 2),
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": rows,
    }
    text = json.dumps(result, indent=1) + "\n"
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

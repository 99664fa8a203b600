"""Random edits of random files, by the real tools, against an oracle.

Each file is `before + old + after` in one of many encodings, line ends and shapes, so that the oracle knows
which bytes may change: those of `old`. Calls that have to be refused (old is not there, not unique, its new
text has no place in the encoding, the file changed meanwhile) must leave every byte as it was.
"""

import asyncio
import codecs
import random
import stat
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.core.tool import FileVersion, ToolContext, ToolResult
from tools.edit import EditParams, EditTool
from tools.patch import PatchParams, PatchTool
from tools.read import ReadParams, ReadTool

_ENCODINGS: Mapping[str, tuple[str, bytes]] = {
    "utf-8": ("utf-8", b""),
    "utf-8 with mark": ("utf-8", codecs.BOM_UTF8),
    "utf-16-le with mark": ("utf-16-le", codecs.BOM_UTF16_LE),
    "utf-16-be with mark": ("utf-16-be", codecs.BOM_UTF16_BE),
    "utf-32-le with mark": ("utf-32-le", codecs.BOM_UTF32_LE),
    "latin-1": ("latin-1", b""),
    "cp1252": ("cp1252", b""),
    "gbk": ("gbk", b""),
    "gb18030": ("gb18030", b""),
    "ascii": ("ascii", b""),
    "utf-8 with broken bytes": ("utf-8", b""),
}
_LETTERS: Mapping[str, str] = {
    "latin-1": "äöüßéñ",
    "cp1252": "äöüß€–",
    "gbk": "配置文件测试数据函数返回",
    "gb18030": "配置文件测试数据函数返回",
    "ascii": "",
}
_ANY = "äß配置→😀“”\u00a0\u200b"
_CODE = "abcxyz019_(){}[]=+-*/.,:;'\"#\\ \t"
_LINE_ENDS = (["\n"], ["\r\n"], ["\n", "\r\n"], ["\n", "\r\n", "\r"])
_KINDS = ("unique", "unique", "unique", "patch", "loose", "missing", "twice", "stale", "unencodable", "all")


@dataclass(frozen=True, slots=True)
class Case:
    """A file and an edit of it. `expected` is None for one that has to be refused."""

    kind: str
    stored: str
    data: bytes
    old: str
    new: str
    expected: bytes | None


class Texts:
    """Random text that an encoding can hold."""

    def __init__(self, chance: random.Random, stored: str) -> None:
        self._chance = chance
        self._letters = _CODE * 2 + _LETTERS.get(stored, _ANY) * 3
        self.ends = chance.choice(_LINE_ENDS)

    def line(self, most: int = 30) -> str:
        return "".join(self._chance.choices(self._letters, k=self._chance.randrange(most)))

    def lines(self, most: int) -> str:
        return "".join(
            self.line() + self._chance.choice(self.ends) for _ in range(self._chance.randrange(most))
        )


def made(chance: random.Random) -> Case:
    """A random case. The old text has a mark in it that is nowhere else."""
    stored = chance.choice(list(_ENCODINGS))
    encoding, mark = _ENCODINGS[stored]
    texts, kind = Texts(chance, stored), chance.choice(_KINDS)
    before, after = texts.lines(12), texts.lines(12) + texts.line() * chance.randrange(2)
    old = f"@1{texts.line()}{texts.lines(4)}{texts.line()}@2"
    new = f"@3{texts.line()}{texts.lines(4)}{texts.line()}@4"

    def encoded(text: str) -> bytes:
        return text.encode(encoding)

    broken = b"# \xff\xfe\x80\n" if stored == "utf-8 with broken bytes" else b""
    head = mark + broken + encoded(before)
    data = head + encoded(old) + encoded(after)
    if kind == "patch":
        before, after = before.rstrip("\r\n") + "\n" if before else "", "\n" + after
        old, new = f"@1{texts.line()}@2", f"@3{texts.line()}@4"
        head = mark + broken + encoded(before)
        data = head + encoded(old) + encoded(after)
    if kind == "loose":
        before, after = before.rstrip("\r\n") + "\n" if before else "", "\n" + after
        head = mark + broken + encoded(before)
        old, new = (text.replace("\r", "").replace("\n", "")[:4] for text in (old, new))  # one line each
        data = head + encoded(f"    {old} \n") + encoded(after)
        return Case(kind, stored, data, f"  {old}", f"  {new}", head)
    if kind == "missing":
        return Case(kind, stored, data, old + "@5", new, None)
    if kind == "twice":
        return Case(kind, stored, head + encoded(old) * 2 + encoded(after), old, new, None)
    if kind == "all":
        twice = head + encoded(old) + encoded("\n") + encoded(old) + encoded(after)
        return Case(kind, stored, twice, old, new, head)
    if kind == "unencodable" and stored in ("latin-1", "cp1252", "gbk"):
        return Case(kind, stored, data, old, new + "\U0001f600", None)
    return Case("unique" if kind == "unencodable" else kind, stored, data, old, new, head)


class _Ledger:
    """Knows what the model has seen; the originals are the oracle's business."""

    def __init__(self) -> None:
        self._seen: dict[Path, bytes] = {}

    def seen(self, path: Path) -> FileVersion | None:
        return FileVersion(0, 0, "") if path in self._seen else None

    def record(self, path: Path) -> None:
        self._seen[path] = path.read_bytes()

    def is_stale(self, path: Path) -> bool:
        return path in self._seen and self._seen[path] != path.read_bytes()

    def before_change(self, path: Path) -> None: ...


class Round:
    """Does one case in a folder of its own and judges it. `made` tells whether the file was changed."""

    def __init__(self, folder: Path) -> None:
        self.made = False
        self._path = folder / "file.txt"
        self._context = ToolContext(
            workspace=folder, ledger=_Ledger(), spill_folder=folder, emit=lambda text: None
        )

    async def fault(self, case: Case) -> str:
        """What is wrong with how it ended; empty if nothing is."""
        self._path.write_bytes(case.data)
        self._path.chmod(0o640)
        await ReadTool().run(ReadParams(path="file.txt"), self._context)
        present = case.data
        if case.kind == "stale":
            present = case.data + b"x"
            self._path.write_bytes(present)
        result = await self.call(case)
        after = self._path.read_bytes()
        if stat.S_IMODE(self._path.stat().st_mode) != 0o640:
            return "the mode changed"
        if list(self._path.parent.iterdir()) != [self._path]:
            return "something was left behind"
        self.made = not result.is_error
        if result.is_error:
            return "a refused edit changed the file" if after != present else self._refusal(case, result)
        if case.expected is None or case.kind == "stale":
            return "an edit was made that had to be refused"
        return self._bytes_outside(case, after)

    async def call(self, case: Case) -> ToolResult:
        if case.kind != "patch":
            params = EditParams(path="file.txt", old=case.old, new=case.new, all=case.kind == "all")
            return await EditTool().run(params, self._context)
        text = f"*** Begin Patch\n*** Update File: file.txt\n-{case.old}\n+{case.new}\n*** End Patch"
        return await PatchTool().run(PatchParams(input=text), self._context)

    def _refusal(self, case: Case, result: ToolResult) -> str:
        if case.expected is None or case.kind in ("stale", "loose"):
            return ""
        # In an encoding that was taken for another one, the model's letters are not the file's.
        return (
            ""
            if "was not found" in result.model_text or "which has no" in result.model_text
            else result.model_text
        )

    def _bytes_outside(self, case: Case, after: bytes) -> str:
        encoding = _ENCODINGS[case.stored][0]
        first, last = "@1".encode(encoding), "@2".encode(encoding)
        start = case.data.index(first)
        end = len(case.data) if case.kind == "loose" else case.data.rindex(last) + len(last)
        if case.kind == "loose":
            line = case.data.index("\n".encode(encoding), start)
            start, end = start - len("    ".encode(encoding)), line
        if not after.startswith(case.data[:start]):
            return "bytes before the old text changed"
        if not after.endswith(case.data[end:]):
            return "bytes after the old text changed"
        middle = after[start : len(after) - len(case.data[end:])]
        return "" if "@3".encode(encoding) in middle else "the new text is not there"


def run(count: int, seed: int) -> dict[str, Any]:
    """Does `count` cases and counts how they ended. `bytes_outside_changed` has to be 0."""
    chance = random.Random(seed)
    kinds: Counter[str] = Counter()
    failures: list[str] = []
    edited = 0

    async def all_of_them(folder: Path) -> None:
        nonlocal edited
        for number in range(count):
            case = made(chance)
            fault = await (judged := Round(folder)).fault(case)
            kinds[case.kind] += 1
            edited += judged.made
            if fault:
                failures.append(f"case {number} ({case.kind}, {case.stored}): {fault}")

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(all_of_them(Path(folder).resolve()))
    return {
        "cases": count,
        "edited": edited,
        "refused": count - edited,
        "kinds": dict(sorted(kinds.items())),
        "bytes_outside_changed": sum("bytes" in failure or "refused edit" in failure for failure in failures),
        "failures": len(failures),
        "first_failures": failures[:10],
    }

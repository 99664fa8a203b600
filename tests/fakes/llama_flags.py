"""The command line of the fake llama-server: the flags of a family, its help, and its complaints.

The inventories are those of `agent/server/dialects/`; the texts of complaints are what the real program
of upstream (build 11434) prints, and for the forks what their sources have.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).resolve().parents[2] / "agent" / "server" / "dialects"
_SAME = {
    "--help": ("-h", "--usage"),
    "--model": ("-m",),
    "--model-draft": ("-md", "--spec-draft-model"),
    "--ctx-size": ("-c",),
    "--parallel": ("-np",),
    "--kv-unified": ("-kvu",),
    "--batch-size": ("-b",),
    "--ubatch-size": ("-ub",),
    "--threads": ("-t",),
    "--gpu-layers": ("-ngl", "--n-gpu-layers"),
    "--cache-type-k": ("-ctk",),
    "--cache-type-v": ("-ctv",),
    "--cache-type-k-draft": ("-ctkd", "--spec-draft-type-k"),
    "--cache-type-v-draft": ("-ctvd", "--spec-draft-type-v"),
    "--flash-attn": ("-fa",),
    "--load-mode": ("-lm",),
    "--cache-ram": ("-cram",),
    "--alias": ("-a",),
    "--spec-draft-n-max": ("--spec-draft-max",),
    "--hf-repo": ("-hf", "-hfr"),
}
_CANONICAL = {other: name for name, others in _SAME.items() for other in others}
_NUMBERS = (
    "--ctx-size", "--parallel", "--batch-size", "--ubatch-size", "--threads", "--port",
    "--spec-draft-n-max", "--spec-draft-n-min", "--cache-ram",
)  # fmt: skip
_KV_TYPES = ("--cache-type-k", "--cache-type-v", "--cache-type-k-draft", "--cache-type-v-draft")
_VARIABLES = {
    "LLAMA_ARG_MODEL": "--model",
    "LLAMA_ARG_CTX_SIZE": "--ctx-size",
    "LLAMA_ARG_N_PARALLEL": "--parallel",
    "LLAMA_ARG_SPEC_TYPE": "--spec-type",
    "LLAMA_ARG_CACHE_TYPE_K": "--cache-type-k",
    "LLAMA_ARG_HOST": "--host",
    "LLAMA_ARG_PORT": "--port",
    "LLAMA_API_KEY": "--api-key",
}
_KIND_OF_HINT = {"--host": "HOST", "--model": "FNAME", "--model-draft": "FNAME", "--alias": "STRING"}


class ArgumentMistakeError(Exception):
    """The whole text for standard error; the program ends with status 1."""


class Flags:
    """What one family knows, and how it says so."""

    def __init__(self, dialect: str) -> None:
        table = json.loads((_FOLDER / f"{dialect}.json").read_text("utf-8"))
        self.dialect = dialect
        self.switches: set[str] = set(table["switches"]) | {"-h", "--help", "--usage", "--version"}
        self.valued: set[str] = set(table["valued"])
        self.removed: dict[str, str] = table.get("removed", {})
        self.stage_keys: list[str] = table.get("stage_keys", [])
        self.combines: bool = table.get("combines", True)
        self.values = {canonical(flag): names for flag, names in table["values"].items()}

    def parse(self, words: list[str], environment: Mapping[str, str]) -> dict[str, str]:
        """Values by their flag's long name, "" for a switch; what is given last wins.

        Raises:
            ArgumentMistakeError: as the real program would complain.
        """
        found: dict[str, str] = {}
        for name, flag in _VARIABLES.items():
            if name in environment and self.dialect != "ik":
                self._check(flag, environment[name], f'environment variable "{name}"', usage=False)
                found[flag] = environment[name]
        rest = list(words)
        while rest:
            word = rest.pop(0)
            flag = canonical(word.replace("_", "-") if word.startswith("--") else word)
            if word in self.removed:
                raise ArgumentMistakeError(self._removed(word))
            if word in self.switches or flag in self.switches:
                found[flag] = ""
                continue
            if word.replace("_", "-") not in self.valued and flag not in self.valued:
                raise ArgumentMistakeError(self._unknown(word))
            if not rest:
                raise ArgumentMistakeError(
                    self._complaint(f'argument "{word}"', "expected value for argument", flag)
                )
            value = rest.pop(0)
            self._check(flag, value, f'argument "{word}"')
            more = flag == "--spec-type" and flag in found and self.dialect == "ik"
            found[flag] = f"{found[flag]},{value}" if more else value
        return found

    def help(self) -> str:
        """All flags in the layout of the family: descriptions at column 40, or 34 in ik_llama.cpp's."""
        groups: dict[str, list[str]] = {}
        for flag in sorted(self.switches | self.valued, key=lambda flag: (flag.lstrip("-"), flag)):
            groups.setdefault(canonical(flag), []).append(flag)
        lines = ["usage: ./llama-server [options]", "", "general:", ""] if self._is_ik else []
        lines += [] if self._is_ik else ["----- common params -----", ""]
        for name, flags in groups.items():
            lines += self._entry(name, sorted(flags, key=len))
        if not self._is_ik:
            lines += ["", "----- server-specific params -----", ""]
            for flag, replacement in self.removed.items():
                advice = f" use {replacement}" if replacement else ""
                lines += self._shown(f"{flag} N", f"the argument has been removed.{advice}")
        return "\n".join(lines) + "\n"

    @property
    def _is_ik(self) -> bool:
        return self.dialect == "ik"

    def _entry(self, name: str, flags: list[str]) -> list[str]:
        hint, description = "", f"about {name.strip('-').replace('-', ' ')}"
        if any(flag in self.valued for flag in flags):
            hint = _KIND_OF_HINT.get(name, "N")
            names = self.values.get(name, [])
            if name == "--spec-type":
                hint, description = self._spec_hint(names)
            elif name in _KV_TYPES:
                hint = "TYPE"
                description += "" if self._is_ik or not names else f"\nallowed values: {', '.join(names)}"
            elif names:
                hint = f"[{'|'.join(names)}]"
        return self._shown(f"{', '.join(flags)} {hint}".rstrip(), description)

    def _spec_hint(self, names: list[str]) -> tuple[str, str]:
        if self._is_ik:
            keys = ",".join(self.stage_keys)
            return "SPEC[:k=v,...]", f"a stage of drafting\ntypes: {', '.join(names)}\ncanonical keys: {keys}"
        return (",".join(names) if self.combines else f"[{'|'.join(names)}]"), "how tokens are proposed"

    def _shown(self, head: str, description: str) -> list[str]:
        indent, column = ("  ", 34) if self._is_ik else ("", 40)
        first, *others = description.split("\n")
        start = indent + head
        lines = [f"{start:<{column}}{first}"] if len(start) < column - 1 else [start, " " * column + first]
        return lines + [" " * column + line for line in others]

    def _check(self, flag: str, value: str, where: str, *, usage: bool = True) -> None:
        shown = flag if usage else ""
        if flag in _NUMBERS and not re.match(r"\s*[-+]?\d", value):
            raise ArgumentMistakeError(self._complaint(where, "stoi", shown))
        if flag == "--spec-type":
            for kind in value.split(",") if self.combines and not self._is_ik else [value]:
                if kind.partition(":")[0] not in self.values[flag]:
                    raise ArgumentMistakeError(self._complaint(where, self._unknown_kind(kind), shown))
        if flag in _KV_TYPES and value not in self.values.get(flag, [value]):
            raise ArgumentMistakeError(self._complaint(where, f"Unsupported cache type: {value}", shown))
        if flag == "--slot-save-path" and not Path(value).is_dir():
            raise ArgumentMistakeError(self._complaint(where, f"not a directory: {value}", shown))
        if flag in ("--api-key-file", "--chat-template-file") and not Path(value).is_file():
            text = f"error: failed to open file '{value}'\n"
            raise ArgumentMistakeError(self._complaint(where, text, shown))
        if flag == "--chat-template-kwargs" and not _is_json(value):
            text = "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error"
            raise ArgumentMistakeError(self._complaint(where, text, shown))

    def _unknown_kind(self, kind: str) -> str:
        if self._is_ik:
            return f"unknown speculative stage type: {kind.partition(':')[0]}"
        if self.dialect == "bee-0.3":
            return "unknown speculative decoding type without draft model"
        return f"unknown speculative type: {kind}"

    def _removed(self, word: str) -> str:
        replacement = self.removed[word]
        if self._is_ik:
            return f"legacy speculative option '{word}' is disabled; use {replacement}\n{self.help()}"
        advice = f" use {replacement}" if replacement else ""
        return self._complaint(f'argument "{word}"', f"the argument has been removed.{advice}", word)

    def _unknown(self, word: str) -> str:
        if self._is_ik:
            return f"error: unknown argument: {word}\n{self.help()}"
        return f"error: invalid argument: {word}\n"

    def _complaint(self, where: str, what: str, flag: str) -> str:
        if self._is_ik:
            text = what if what.startswith("unknown speculative") else f"error: invalid parameter for {where}"
            return f"{text.replace('argument ', 'argument: ').replace(chr(34), '')}\n{self.help()}"
        if not flag:
            return f"error while handling {where}: {what}\n\n\n"
        entry = "\n".join(self._entry(flag, [flag]))
        usage = f"usage:\n{entry}\n\n\nto show complete usage, run with -h\n"
        return f"error while handling {where}: {what}\n\n{usage}"


def canonical(flag: str) -> str:
    """The long name of a flag that the fake acts on, itself for others."""
    return _CANONICAL.get(flag, flag)


def _is_json(text: str) -> bool:
    try:
        value: Any = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict)

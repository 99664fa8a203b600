"""What the fake llama-server is told to do wrong, or differently. Read from `FAKE_LLAMA_*` variables."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

PREFIX = "FAKE_LLAMA_"


@dataclass(frozen=True)
class Switches:
    """Each field is the variable of its name in capitals, `FAKE_LLAMA_DIALECT` for `dialect`.

    dialect: whose flags and help it has, a name of `agent/server/dialects/`.
    version: what `--version` says.
    journal: a file that gets a line of JSON for each start: pid, argv, and the names of LLAMA_* variables.
    requests: a file that gets a line of JSON for each POST: path and body.
    faulty_starts: only so many starts go wrong, counted in the journal; 0 = all of them.
    only_when_drafting: only starts that speculate go wrong.

    load_seconds: how long /health says 503.
    load_until: loading lasts until this file exists.
    never_ready: /health says 503 for ever.
    ignore_sigterm: only SIGKILL ends it.
    port_busy: the port is taken by somebody else, whatever is true.
    die_loading: lines for standard error, before it ends while loading ("" ends without a word).
    exit_code, exit_signal: how it ends then; a signal wins.
    die_in_stream: ends after so many pieces of a stream, by `exit_signal` or SIGKILL.
    abort_at_request: healthy until the first request for tokens, if it drafts (Gemma 3 with DFlash).
    chat_error: each chat is answered with 500 and these words.
    sick_if: /health says 500 while this file exists.

    context: what a slot gets at the most, less than asked.
    trained_context: what `--ctx-size 0` means.
    speculation: "off" = asked for but not there, "idle" = said to be there but nothing is drafted.
    block_size: of the drafter; longer drafts are cut.
    busy: the first slot is at work.
    any_model: model files are not looked at.

    reply: what it answers, again and again until the limit of tokens when `endless`.
    piece_seconds: between two pieces of a stream.
    speed, drafting_speed, prompt_speed: tokens per second in `timings`; nothing really takes that long.
    acceptance: share of the drafted tokens that is accepted.
    no_timings: as engines that are no llama-server.
    """

    dialect: str = "llama.cpp"
    version: str = "0.6.0-dev (build 11434, commit 0a1b2c3)"
    journal: str = ""
    requests: str = ""
    faulty_starts: int = 0
    only_when_drafting: bool = False
    load_seconds: float = 0.0
    load_until: str = ""
    never_ready: bool = False
    ignore_sigterm: bool = False
    port_busy: bool = False
    die_loading: str | None = None
    exit_code: int = 1
    exit_signal: int = 0
    die_in_stream: int = 0
    abort_at_request: bool = False
    chat_error: str = ""
    sick_if: str = ""
    context: int = 0
    trained_context: int = 32768
    speculation: str = "on"
    block_size: int = 16
    busy: bool = False
    any_model: bool = False
    reply: str = "All is well, there is nothing to do."
    endless: bool = True
    piece_seconds: float = 0.0
    speed: float = 40.0
    drafting_speed: float = 130.0
    prompt_speed: float = 500.0
    acceptance: float = 0.5
    no_timings: bool = False

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "Switches":
        """The variables that are there; others keep their defaults."""
        found: dict[str, Any] = {}
        for field in fields(cls):
            text = environment.get(PREFIX + field.name.upper())
            if text is not None:
                found[field.name] = _value(text, field.default)
        return cls(**found)

    def record_start(self, argv: list[str], environment: Mapping[str, str], pid: int) -> int:
        """Writes the journal and gives the number of this start, from 1."""
        if not self.journal:
            return 1
        path = Path(self.journal)
        names = sorted(name for name in environment if name.startswith(("LLAMA_", "XDG_CONFIG")))
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"pid": pid, "argv": argv, "variables": names}) + "\n")
        return len(path.read_text("utf-8").splitlines())


def _value(text: str, default: object) -> object:
    if isinstance(default, bool):
        return text not in ("", "0")
    if isinstance(default, int):
        return int(text)
    return float(text) if isinstance(default, float) else text

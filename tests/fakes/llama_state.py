"""What the fake llama-server decided from its flags, and the figures it answers with."""

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.fakes.llama_switches import Switches

_WITH_A_MODEL = ("draft-simple", "draft-eagle3", "draft-dflash", "draft-dspark", "dflash", "draft", "dspark")
_LAYER_INPUT = (
    "/build/llama.cpp/src/llama-graph.cpp:1413: "
    'GGML_ASSERT(t_layer_inp[il] != nullptr && "layer input tensor is null") failed\n'
)
_USUAL_N_MAX = 3
_BEE_N_MAX = 16
_CHARACTERS_PER_TOKEN = 4


class State:
    """Shared by all threads of one server."""

    def __init__(
        self,
        switches: Switches,
        given: dict[str, str],
        die: Callable[[int, int], Any],
        log: Callable[[str, str], None],
    ) -> None:
        self.switches = switches
        self.given = given
        self.die = die
        self.log = log
        self.faulty = True
        self.ready = False
        self.model = given.get("--model", "")
        self.router = not self.model and "--hf-repo" not in given
        self.draft = given.get("--model-draft", "")
        self.alias = given.get("--alias", Path(self.model).name)
        self.keys = self._read_keys()
        slots = int(given.get("--parallel", "-1" if switches.dialect != "ik" else "1"))
        self.slots = slots if slots > 0 else 4
        self.unified = "--kv-unified" in given or slots < 1
        self.context = self._context()
        self.kinds = self._kinds()
        self.speculative = bool(self.kinds) and switches.speculation != "off"
        self.asked_n_max, self.n_max = self._lengths()
        self.waiting_requests = 0
        self.streams = 0
        self.totals = {"prompt": 0, "predicted": 0, "drafted": 0, "accepted": 0}
        self._cached = ""
        self._lock = threading.Lock()

    def _read_keys(self) -> set[str]:
        keys = set(filter(None, self.given.get("--api-key", "").split(",")))
        if "--api-key-file" in self.given:
            with Path(self.given["--api-key-file"]).open(encoding="utf-8") as file:
                lines = [line.strip() for line in file]
            keys |= {line for line in lines if line and not line.startswith("#")}
        return keys

    def _context(self) -> int:
        whole = int(self.given.get("--ctx-size", "0")) or self.switches.trained_context
        each = whole if self.unified else whole // self.slots
        return min(each, self.switches.context) if self.switches.context else each

    def _kinds(self) -> list[str]:
        """The ways of drafting that really work: those with a draft model need one, and say nothing."""
        asked = [part.partition(":")[0] for part in self.given.get("--spec-type", "").split(",")]
        kinds = [kind for kind in asked if "=" not in kind and kind not in ("", "none")]
        if not asked[0] and self.draft and self._is_dflash():
            kinds = ["dflash" if self.switches.dialect == "bee-0.3" else "draft-dflash"]
        return [kind for kind in kinds if kind not in _WITH_A_MODEL or self.draft]

    def _is_dflash(self) -> bool:
        try:
            with Path(self.draft).open("rb") as file:
                return b"dflash" in file.read(4096)
        except OSError:
            return False

    def _lengths(self) -> tuple[int, int]:
        """How many tokens are asked for at once, and how many the drafter gives."""
        most = self.switches.block_size - 1
        usual = {"bee-0.4": most, "bee-0.3": _BEE_N_MAX}.get(self.switches.dialect, _USUAL_N_MAX)
        for part in self.given.get("--spec-type", "").replace(":", ",").split(","):
            if part.startswith("n_max="):
                usual = int(part.partition("=")[2])
        asked = int(self.given.get("--spec-draft-n-max", usual))
        dflash = any("dflash" in kind for kind in self.kinds)
        return asked, min(asked, most) if dflash else asked

    def abort_if_told(self) -> None:
        """What happens with a target that cannot hand out its hidden states."""
        if self.faulty and self.switches.abort_at_request and self.speculative:
            os.write(2, _LAYER_INPUT.encode("utf-8"))
            self.die(0, signal.SIGABRT)

    def die_if_told(self, pieces: int) -> None:
        limit = self.switches.die_in_stream
        if self.faulty and limit and pieces >= limit:
            self.die(1, self.switches.exit_signal or signal.SIGKILL)

    def pieces(self, most: int) -> Iterator[str]:
        """The words of the reply, one for each token."""
        words = self.switches.reply.split(" ") if self.switches.reply else []
        for number in range(most):
            if not words or (number >= len(words) and not self.switches.endless):
                return
            yield ("" if number == 0 else " ") + words[number % len(words)]

    def read_prompt(self, text: str) -> tuple[int, int]:
        """Tokens of a prompt that were kept from the last one, and those that had to be evaluated."""
        with self._lock:
            pairs = enumerate(zip(text, self._cached, strict=False))
            same = next(
                (place for place, (new, old) in pairs if new != old), min(len(text), len(self._cached))
            )
            self._cached = text
        whole = tokens_in(text)
        kept = min(same // _CHARACTERS_PER_TOKEN, whole - 1)
        return kept, whole - kept

    def timings(self, kept: int, evaluated: int, predicted: int) -> dict[str, Any]:
        """As the real server counts, with speeds that were made up."""
        drafted, accepted = self._drafted(predicted)
        speed = self.switches.drafting_speed if drafted else self.switches.speed
        prompt_ms = 1000 * evaluated / self.switches.prompt_speed
        predicted_ms = 1000 * predicted / speed
        with self._lock:
            for name, count in zip(self.totals, (evaluated, predicted, drafted, accepted), strict=True):
                self.totals[name] += count
        figures = {
            "cache_n": kept,
            "prompt_n": evaluated,
            "prompt_ms": prompt_ms,
            "prompt_per_token_ms": prompt_ms / max(1, evaluated),
            "prompt_per_second": self.switches.prompt_speed,
            "predicted_n": predicted,
            "predicted_ms": predicted_ms,
            "predicted_per_token_ms": predicted_ms / max(1, predicted),
            "predicted_per_second": speed,
        }
        return figures | ({"draft_n": drafted, "draft_n_accepted": accepted} if drafted else {})

    def _drafted(self, predicted: int) -> tuple[int, int]:
        if not self.speculative or self.switches.speculation == "idle" or predicted < 3:
            return 0, 0
        steps = math.ceil(predicted / (1 + self.switches.acceptance * self.n_max))
        drafted = steps * self.n_max
        return drafted, min(predicted - 1, round(drafted * self.switches.acceptance))


def tokens_in(text: str) -> int:
    """Four characters are a token here."""
    return 1 + len(text) // _CHARACTERS_PER_TOKEN

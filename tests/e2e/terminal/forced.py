"""A real server with the smallest model, whose replies in a terminal are settled beforehand."""

from dataclasses import dataclass
from typing import Any

from agent.server.probe import busy_slots
from agent.server.record import Record
from agent.ui.text import count, rate
from benchmarks.forcing_proxy import ForcingProxy

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Forced:
    """The real server and what stands in front of it."""

    proxy: ForcingProxy
    record: Record

    @property
    def is_idle(self) -> bool:
        """Whether the server works for nobody."""
        return busy_slots(self.record) == 0

    def messages(self, number: int) -> list[dict[str, Any]]:
        """The conversation that went along with that request, counted from 0."""
        return self.proxy.requests[number]["messages"]

    def told(self, number: int, role: str = "user") -> list[str]:
        """The texts of that role in that request, oldest first."""
        return [str(message["content"]) for message in self.messages(number) if message["role"] == role]

    def read(self, number: int) -> tuple[int, int]:
        """Prompt tokens of that request: out of the server's cache, and read anew."""
        timings = self.proxy.timings[number]
        return timings["cache_n"], timings["prompt_n"]

    def prompt(self, number: int) -> int:
        """Tokens of the whole prompt of that request."""
        return sum(self.read(number))

    def figures(self, number: int) -> tuple[str, ...]:
        """What a wide status bar says after that request."""
        cached, new = self.read(number)
        timings = self.proxy.timings[number]
        speed = 1000 * timings["predicted_n"] / timings["predicted_ms"]
        return f"{count(cached)} cached + {count(new)} new", f" {rate(speed)} tok/s"

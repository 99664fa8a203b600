"""What services report of the context and of the server, as text with colours."""

from collections.abc import Mapping, Sequence
from typing import Any

from textual.content import Content

from agent.ui.conversation.text import visible
from agent.ui.result_text import as_text
from agent.ui.text import count, one_line, rate, share, size

BAR_CELLS = 24
# Beside it a window of hundreds of thousands of tokens still fits on a row of eighty columns.
_WINDOW_CELLS = 40
_LOG_LINES = 12


def context_text(report: Any) -> Content:
    """The service `context`: how full the window is, and what fills it. Seconds are what this machine takes
    to read it."""
    parts = getattr(report, "parts", None)
    if parts is None:
        return Content(as_text(report))
    used = report.used or report.total
    whole = report.window or max(used, 1)
    mark = "" if report.is_exact else "~"
    lines: list[Content] = []
    if report.window:
        lines += [
            Content.assemble(
                _bar(used / whole, _WINDOW_CELLS),
                f"  {used:,} of {whole:,} tokens, {share(used / whole)}",
            ),
            Content(""),
        ]
    lines.append(Content.styled(f"{'':<12}{'tokens':>9}{'messages':>10}{'to read':>10}", "$quiet"))
    for part in sorted(parts, key=lambda part: -part.tokens):
        seconds = "" if part.seconds is None else f"{part.seconds:.1f} s"
        tokens = f"{mark}{part.tokens:,}"
        row = f"{one_line(part.kind, 12):<12}{tokens:>9}{part.messages:>10}{seconds:>10}  "
        lines.append(Content.assemble(row, _bar(part.tokens / max(report.total, 1), BAR_CELLS, rest=" ")))
    return Content("\n").join([*lines, *_remarks(report, parts)])


def _remarks(report: Any, parts: Sequence[Any]) -> list[Content]:
    found = []
    seconds = [part.seconds for part in parts if part.seconds is not None]
    if seconds:
        found.append(f"Reading all of it anew takes this machine about {sum(seconds):.0f} s.")
    if not report.is_exact:
        found.append("~ is an estimate by length: no server was there to count.")
    return [Content(""), *(Content.styled(text, "$quiet") for text in found)] if found else []


def _bar(part: float, cells: int, rest: str = "─") -> Content:
    filled = min(cells, round(max(part, 0.0) * cells)) or (1 if part > 0 else 0)
    style = "$text-error" if part > 0.9 and rest != " " else "$text-primary"
    return Content.assemble(("━" * filled, style), (rest * (cells - filled), "$quiet"))


def server_text(panel: Any) -> Content:
    """The service `server`: what runs, with what, what was noticed, and the end of its log."""
    if isinstance(panel, Mapping) or not hasattr(panel, "state"):
        return Content(as_text(panel))
    rows = [(name, value) for name, value in _server_rows(panel) if value]
    wide = max(len(name) for name, _ in rows)
    lines = [Content.assemble((name.ljust(wide + 2), "$quiet"), visible(value)) for name, value in rows]
    for finding in getattr(panel, "findings", ()):
        tone = "$quiet" if finding.get("level") == "info" else "$text-warning"
        lines += [Content(""), Content.styled(visible(f"! {finding.get('message', '')}"), tone)]
        if finding.get("hint"):
            lines.append(Content.styled(visible(f"  {finding['hint']}"), "$quiet"))
    log = tuple(panel.log)[-_LOG_LINES:]
    if log:
        lines += [Content(""), Content.styled("the end of its log (/server log shows more)", "$quiet")]
        lines += [Content(visible(line)) for line in log]
    return Content("\n").join(lines)


def _server_rows(panel: Any) -> list[tuple[str, str]]:
    memory = getattr(panel, "memory_bytes", None)
    drafting = getattr(panel, "speculation", "")
    return [
        ("state", str(panel.state)),
        ("profile", str(panel.profile)),
        ("model", str(panel.model)),
        ("engine", str(panel.engine)),
        ("address", str(panel.url)),
        ("process", str(panel.pid or "")),
        ("context", f"{panel.context_tokens:,} tokens" if panel.context_tokens else ""),
        ("slots", str(panel.slots or "")),
        ("memory", size(memory) if memory else ""),
        ("speculation", "off" if drafting == "none" else str(drafting)),
        ("tool calls", str(panel.tool_protocol)),
        ("prefill", f"{rate(panel.prefill_rate)} tok/s" if panel.prefill_rate else ""),
        ("log file", str(panel.log_file or "")),
    ]


def switch_cost(switch: Any) -> str:
    """What the service `profile` says of the cost, in one line."""
    from agent.ui.text import duration

    tokens, seconds = getattr(switch, "tokens", 0), getattr(switch, "seconds", None)
    parts = [f"{count(tokens)} tokens to read" if tokens else "nothing to read yet"]
    if seconds:
        parts.append(f"about {duration(seconds)} at the speed measured here")
    if not getattr(switch, "is_running", True):
        parts.append("its server has to start")
    return ", ".join(parts)

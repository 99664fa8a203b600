"""A recorded session as a file for other people: Markdown, HTML or JSON.

What looks like a key or a password is taken out once more: a record stays on this machine, an export does
not.
"""

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent.core.errors import UsageError
from agent.session.lines import plain
from agent.session.readable import excerpt, said
from agent.session.store import REDACTED, redact

FORMS = ("markdown", "html", "json")
EXPORT_FORMAT = 1

_MOST_RESULT_LINES = 200
_LONGEST_ARGUMENTS = 2_000
_SECRETS = re.compile(
    r"""
    -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)
    | \b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bglpat-[A-Za-z0-9_-]{16,} | \bhf_[A-Za-z0-9]{20,}
    | \bxox[abprs]-[A-Za-z0-9-]{10,}
    | \bAKIA[0-9A-Z]{16}\b | \bAIza[0-9A-Za-z_-]{30,}
    | \beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*
    | (?<=://)[^\s/:@]+:[^\s/@]+(?=@)
    | (?i:(?<=bearer[ ])[A-Za-z0-9._~+/=-]{12,})
    """,
    re.VERBOSE | re.DOTALL,
)

Record = Mapping[str, Any]
_ENDINGS = {".html": "html", ".htm": "html", ".json": "json"} | dict.fromkeys(
    ("", ".md", ".markdown", ".txt"), "markdown"
)


def form_for(path: Path) -> str:
    """The form that the ending of a file asks for; Markdown where it has none.

    Raises:
        UsageError: no form has such an ending.
    """
    form = _ENDINGS.get(path.suffix.lower())
    if form is None:
        raise UsageError(
            f"a session is not written as {path.suffix}", "the endings are .md (or .txt), .html and .json"
        )
    return form


def exported(records: Iterable[Record], form: str, secrets: Iterable[str] = ()) -> Iterator[str]:
    """The pieces of the export in one of the `FORMS`, in order. `secrets` never get into it.

    Raises:
        UsageError: there is no such form.
    """
    writer = _FORMS.get(form)
    if writer is None:
        raise UsageError(f"a session cannot be exported as {form!r}", f"the forms are {', '.join(FORMS)}")
    known = tuple(secrets)

    def clean(text: str) -> str:
        return _SECRETS.sub(REDACTED, redact(text, known)).encode("utf-8", "replace").decode("utf-8")

    cleaned = (plain(record, clean) for record in records)
    return writer(cleaned)


def _json(records: Iterable[Record]) -> Iterator[str]:
    yield f'{{"export": {EXPORT_FORMAT}, "records": ['
    for number, record in enumerate(records):
        # ASCII only, so that no reader can take U+2028 and its like for the end of a line.
        yield f"{',' if number else ''}\n{json.dumps(record, ensure_ascii=True)}"
    yield "\n]}\n"


def _markdown(records: Iterable[Record]) -> Iterator[str]:
    for kind, title, text in _parts(records):
        if kind == "title":
            yield f"# {title}\n\n{text}\n\n"
        elif kind in ("user", "assistant"):
            yield f"## {title}\n\n{text}\n\n"
        elif text:
            yield f"**{title}**\n\n{_fenced(text)}\n\n"
        else:
            yield f"*{title}*\n\n"


def _html(records: Iterable[Record]) -> Iterator[str]:
    yield (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # No script runs and nothing is loaded, whatever a model has written.
        '<meta http-equiv="Content-Security-Policy"'
        " content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>agent session</title>\n<style>{_STYLE}</style></head><body><main>\n"
    )
    for kind, title, text in _parts(records):
        body = html.escape(text)
        if kind == "title":
            yield f"<h1>{html.escape(title)}</h1>\n<p>{body}</p>\n"
        elif kind in ("user", "assistant"):
            yield f'<section class="{kind}"><h2>{html.escape(title)}</h2><pre>{body}</pre></section>\n'
        elif text:
            yield f"<details><summary>{html.escape(title)}</summary><pre>{body}</pre></details>\n"
        else:
            yield f'<p class="note">{html.escape(title)}</p>\n'
    yield "</main></body></html>\n"


def _parts(records: Iterable[Record]) -> Iterator[tuple[str, str, str]]:
    """What a reader wants to see: kind, a title of one line, and a text that may be empty."""
    for record in records:
        write = _WRITERS.get(str(record.get("type", "")))
        if write is not None:
            yield from write(record)


def _header(record: Record) -> Iterator[tuple[str, str, str]]:
    task = excerpt(str(record.get("task") or ""), 100)
    where = f"{record.get('started', '')} · {record.get('profile') or 'no profile'} · {record.get('id', '')}"
    yield "title", task or "A session", where


def _user(record: Record) -> Iterator[tuple[str, str, str]]:
    yield "user", "You", _text(record.get("text"))


def _assistant(record: Record) -> Iterator[tuple[str, str, str]]:
    if record.get("reasoning"):
        yield "note", "Reasoning", _text(record["reasoning"])
    text = said(record)
    if text:
        yield "assistant", "Model", _text(text)


def _call(record: Record) -> Iterator[tuple[str, str, str]]:
    arguments = record.get("arguments")
    text = json.dumps(arguments, ensure_ascii=False, indent=1) if arguments else ""
    if len(text) > _LONGEST_ARGUMENTS:
        text = text[:_LONGEST_ARGUMENTS] + f"\n… {len(text) - _LONGEST_ARGUMENTS} more characters"
    yield "call", f"Call of {record.get('tool', '')}", text


def _result(record: Record) -> Iterator[tuple[str, str, str]]:
    lines = _text(record.get("text")).split("\n")
    if len(lines) > _MOST_RESULT_LINES:
        lines = [*lines[:_MOST_RESULT_LINES], f"… {len(lines) - _MOST_RESULT_LINES} more lines"]
    yield "result", f"Result of {record.get('tool', '')}: {record.get('outcome', '')}", "\n".join(lines)


def _check(record: Record) -> Iterator[tuple[str, str, str]]:
    verdict = "passed" if record.get("passed") else "failed"
    yield (
        "check",
        f"Check {verdict}: {excerpt(str(record.get('command', '')), 100)}",
        _text(record.get("text")),
    )


def _notice(record: Record) -> Iterator[tuple[str, str, str]]:
    yield "note", excerpt(str(record.get("text", "")), 500), ""


def _end(record: Record) -> Iterator[tuple[str, str, str]]:
    reason = str(record.get("reason", "")).replace("_", " ")
    yield "note", f"End of the turn: {reason}", ""


def _rewound(record: Record) -> Iterator[tuple[str, str, str]]:
    yield "note", f"Went back to before turn {record.get('to_turn', '?')} ({record.get('what', '')})", ""


def _text(value: object) -> str:
    """`value` as text without what a viewer would act on; line ends and tabs stay."""
    text = str(value or "").replace("\r\n", "\n")
    return "".join(char for char in text if char.isprintable() or char in "\n\t").rstrip()


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:0;color:#222;background:#fff}"
    "main{max-width:50rem;margin:auto;padding:1rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;font:14px/1.45 ui-monospace,monospace}"
    ".user{border-left:4px solid #37c;padding-left:1rem}h2{font-size:1rem;margin:1rem 0 0}"
    "details{color:#555}.note{color:#666;font-style:italic}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}details,.note{color:#aaa}}"
)

_WRITERS: dict[str, Callable[[Record], Iterator[tuple[str, str, str]]]] = {
    "session": _header,
    "user_message": _user,
    "assistant_message": _assistant,
    "tool_started": _call,
    "tool_finished": _result,
    "check_finished": _check,
    "notice": _notice,
    "turn_finished": _end,
    "rewound": _rewound,
}

_FORMS: dict[str, Callable[[Iterable[Record]], Iterator[str]]] = {
    "markdown": _markdown,
    "html": _html,
    "json": _json,
}

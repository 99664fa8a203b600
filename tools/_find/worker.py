"""A slow stand-in for ripgrep, run as `python worker.py` in a process of its own.

A regular expression can take for ever and cannot be interrupted inside a thread; a process can be
stopped. Uses nothing but the standard library, and so starts fast with `python -I -S`.

Standard input: NUL-separated pattern, `regex` or `text`, most matches per file, then file names.
Standard output: `name NUL line : column : text` for each matching line, as ripgrep prints it.
"""

import re
import sys
from pathlib import Path

_SAMPLE_BYTES = 8000
_LONGEST_LINE = 4000
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def main() -> None:
    pattern, kind, limit, *names = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\0")
    regex = re.compile(re.escape(pattern) if kind == "text" else pattern)
    for name in names:
        try:
            print_matches(regex, name, int(limit))
        except OSError:
            continue  # unreadable or gone: ripgrep is silent about these as well


def print_matches(regex: re.Pattern[str], name: str, limit: int) -> None:
    encoding = text_encoding(name)
    if encoding is None:
        return
    label = name.encode("utf-8", "surrogateescape")
    with Path(name).open(encoding=encoding, errors="replace", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            text = line.rstrip("\r\n")[:_LONGEST_LINE]
            match = regex.search(text)
            if match:
                column = len(text[: match.start()].encode("utf-8", "replace")) + 1
                shown = text.encode("utf-8", "replace")
                sys.stdout.buffer.write(b"%s\0%d:%d:%s\n" % (label, number, column, shown))
                limit -= 1
                if not limit:
                    break
    sys.stdout.buffer.flush()


def text_encoding(name: str) -> str | None:
    with Path(name).open("rb") as stream:
        sample = stream.read(_SAMPLE_BYTES)
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return encoding
    return None if b"\0" in sample else "utf-8"


if __name__ == "__main__":
    main()

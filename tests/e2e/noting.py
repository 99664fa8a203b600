"""Runs `agent` in this process, `python noting.py REPORT ARGUMENTS...`, and notes what it loads and starts.

At each connection to a server it notes which modules are loaded by then, and which programs were started.
"""

import json
import sys
from pathlib import Path

_LEADING = ("-c",)  # of git: options with a value in front of the command


def main() -> None:
    report = Path(sys.argv.pop(1))
    started: list[str] = []
    connections: list[dict[str, list[str]]] = []

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event == "subprocess.Popen":
            started.append(_named(arguments[1]))
        elif event == "socket.connect":
            connections.append({"modules": sorted(sys.modules), "started": [*started]})

    sys.addaudithook(note)
    from agent.__main__ import main as agent

    try:
        code = agent()
    finally:
        report.write_text(json.dumps({"connections": connections, "started": started}), encoding="utf-8")
    sys.exit(code)


def _named(words: object) -> str:
    """The program, and for git what it is asked for."""
    words = [str(word) for word in words] if isinstance(words, list | tuple) else [str(words)]
    name = Path(words[0]).name
    if name != "git":
        return name
    while words[1] in _LEADING:
        del words[1:3]
    return f"git {words[1]}"


if __name__ == "__main__":
    main()

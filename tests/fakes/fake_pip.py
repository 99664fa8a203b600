"""Stands in for `pip`: takes wheels from a shelf, a folder of files, instead of an index.

`python fake_pip.py SHELF download … --dest DIR NAME`. `NAME.whl` is delivered as `NAME-1-py3-none-any.whl`;
`NAME.error` is printed on stderr instead, with exit status 1; for `NAME.hang` it never ends. Each call is
added to `calls` on the shelf.
"""

import shutil
import signal
import sys
from pathlib import Path


def main() -> int:
    shelf = Path(sys.argv[1])
    arguments = sys.argv[2:]
    name = arguments[-1]
    with (shelf / "calls").open("a", encoding="utf-8") as calls:
        calls.write(" ".join(arguments) + "\n")
    if (shelf / f"{name}.hang").exists():
        signal.pause()
    if (shelf / f"{name}.error").exists():
        print((shelf / f"{name}.error").read_text("utf-8"), file=sys.stderr)
        return 1
    if not (shelf / f"{name}.whl").exists():
        print(f"ERROR: No matching distribution found for {name}", file=sys.stderr)
        return 1
    folder = Path(arguments[arguments.index("--dest") + 1])
    shutil.copyfile(shelf / f"{name}.whl", folder / f"{name}-1-py3-none-any.whl")
    return 0


if __name__ == "__main__":
    sys.exit(main())

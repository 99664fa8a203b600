"""`python -m agent` and the console script."""

import gc
import sys


def main() -> int:
    from agent.cli.main import run

    try:
        return run(sys.argv[1:])
    finally:
        # Python looks through everything for garbage while it ends. What is frozen is passed over, and the
        # system takes the memory back anyway.
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())

"""`python -m agent` and the console script."""

import sys


def main() -> int:
    from agent.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())

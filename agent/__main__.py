"""`python -m agent` and the console script."""

import gc
import signal
import sys


def main() -> int:
    try:
        from agent.cli.main import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        return 130  # so early, or so late, that nothing has been begun or everything is done
    finally:
        # The exit code stands. While Python ends, one more Ctrl-C would turn it into a death by signal.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Python looks through everything for garbage while it ends. What is frozen is passed over, and the
        # system takes the memory back anyway.
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())

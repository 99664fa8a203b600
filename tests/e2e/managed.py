"""`agent run` with another program for the engine: `python -m tests.e2e.managed [arguments of agent run]`.

The variable ENGINE holds the program and its arguments as a JSON list.
"""

import argparse
import json
import os
import sys
from dataclasses import replace

from agent.app.run.headless import run_headless
from agent.app.servers.serving import Serving, choose
from agent.cli.run import add_parser, request_of
from agent.config.load import LoadedSettings
from agent.core.errors import AgentError


def serve(loaded: LoadedSettings) -> Serving:
    return replace(choose(loaded), command=tuple(json.loads(os.environ["ENGINE"])))


def main() -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    try:
        return run_headless(request_of(parser.parse_args(["run", *sys.argv[1:]])), serve)
    except AgentError as error:
        print(f"agent: {error}", file=sys.stderr)
        return int(error.exit_code)


if __name__ == "__main__":
    sys.exit(main())

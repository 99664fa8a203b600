"""`agent server states`: what servers have read and keep on disk, and how to be rid of it."""

import argparse
import sys


def add_action(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `states` to `agent server`."""
    states = actions.add_parser(
        "states",
        help="what servers have read and keep on disk for a quicker start",
        description="Lists the saved states of slots, a line for each server. They hold your prompts.",
    )
    states.add_argument("--rm", action="store_true", help="delete all of them")
    states.set_defaults(func=run_states)


def run_states(arguments: argparse.Namespace) -> int:
    """Lists or deletes the states."""
    from agent.app.servers.kept_states import delete_all_states, state_lines

    if arguments.rm:
        count = delete_all_states()
        print(f"removed  {count} state{'' if count == 1 else 's'}")
        return 0
    lines = state_lines()
    for line in lines:
        print(line)
    if not lines:
        print("no states are kept", file=sys.stderr)
    return 0

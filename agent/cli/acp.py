"""`agent acp`: an editor drives sessions over stdin and stdout."""

import argparse

from agent.cli.chat import MODES


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "acp",
        help="serve an editor over the Agent Client Protocol",
        description="Serves an editor that speaks the Agent Client Protocol on stdin and stdout. "
        "The editor starts it; docs/acp.md says how for Zed, Neovim and JetBrains.",
    )
    parser.add_argument("--profile", metavar="NAME", help="server profile, see `agent profile list`")
    parser.add_argument("--mode", choices=MODES, help="what the model may do without a question, at first")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises UsageError: the protocol's library is not installed."""
    from agent.app.acp import run_acp

    return run_acp(arguments.profile or "", arguments.mode)

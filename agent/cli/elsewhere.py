"""What people type who come from another coding assistant, and how it is called here. Only for hints."""

from collections.abc import Iterable

_TASK = "`agent run -p 'what to do'` does a task; `agent` alone opens the terminal interface"
COMMANDS = {
    **dict.fromkeys(("ask", "do", "exec", "prompt"), _TASK),
    **dict.fromkeys(("auth", "login"), "no account is needed; `agent setup` gets a model running"),
    **dict.fromkeys(
        ("history", "ls"), "`agent session list` shows the conversations and runs of this folder"
    ),
    **dict.fromkeys(
        ("continue", "resume"), "`agent --continue` goes on with the last session of this folder"
    ),
    **dict.fromkeys(("ps", "status"), "`agent server status` says which servers run"),
    **dict.fromkeys(("serve", "start"), "`agent server start` starts the model server"),
    "download": "`agent model pull` fetches the files of a model",
    "export": "`agent session export` writes a session for other people to read",
    "fit": "`agent server fit PROFILE` says whether a model fits",
    "init": "nothing has to be prepared in a repository; `agent setup` gets a model running",
    "install": "`agent server install` builds a server, `agent setup` does all that is needed",
    "logs": "`agent server logs` shows the end of a server's log",
    "pull": "`agent model pull` fetches the files of a model",
    "redo": "`agent undo --redo` brings back what was undone last",
    "rewind": "`agent undo` takes back what the last run changed, again the one before; /rewind in the "
    "terminal also goes back in the conversation",
    "stop": "`agent server stop` stops the model server",
    "version": "see `agent --version`",
}
_ACTIONS = {
    **dict.fromkeys(("cat", "get", "info", "view"), ("show",)),
    **dict.fromkeys(("create", "init"), ("new", "add")),
    **dict.fromkeys(("del", "delete", "uninstall"), ("rm", "remove", "unset")),
    **dict.fromkeys(("download", "fetch"), ("pull", "install", "add")),
    **dict.fromkeys(("list", "ls", "ps"), ("list", "status")),
    **dict.fromkeys(("check", "lint"), ("validate", "verify", "test")),
    "continue": ("resume",),
    "kill": ("stop",),
    "open": ("resume",),
    "remove": ("rm", "uninstall", "unset"),
    "rm": ("remove", "uninstall", "unset"),
    "run": ("start",),
    "up": ("start",),
    "down": ("stop",),
}
_OPTIONS = {
    **dict.fromkeys(("--cd", "--cwd", "--dir"), "--directory"),
    **dict.fromkeys(("--dangerously-skip-permissions", "--permission-mode", "--yolo"), "--mode"),
    **dict.fromkeys(("--format", "--json", "--output-format"), "--output"),
    **dict.fromkeys(("--message", "--print"), "--prompt"),
    **dict.fromkeys(("-r", "--session"), "--resume"),
    **dict.fromkeys(("-m", "--model"), "--profile"),
    "--allowedTools": "--allow",
    "--disallowedTools": "--deny",
    "--max-turns": "--max-steps",
    "--timeout": "--max-seconds",
    "-c": "--continue",
    "-v": "--version",
    "-V": "--version",
}


def command_hint(word: str) -> str:
    """What to type instead of the command `word`, empty where nobody can tell."""
    return _TASK if len(word.split()) > 1 else COMMANDS.get(word, "")


def action_meant(word: str, known: Iterable[str]) -> str:
    """The one of `known` that does what `word` does in other programs, or empty."""
    there = set(known)
    return next((action for action in _ACTIONS.get(word, ()) if action in there), "")


def option_meant(option: str, known: Iterable[str]) -> str:
    """The same for an option."""
    meant = _OPTIONS.get(option, "")
    return meant if meant in set(known) else ""

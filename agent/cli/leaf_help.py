"""What `--help` of a command says beyond its options: a sentence where the parser has none, and examples.

Data in one place, so that the wording stays the same, and loaded only when somebody asks for help.
"""

DESCRIPTIONS = {
    "agent session show": "Prints what happened in a run or conversation: what was said, and each call.",
    "agent session rm": "Deletes sessions with the originals of the files they changed: `agent undo` has "
    "nothing to put back then.",
    "agent server start": "Starts the server of a profile in the background and waits until it answers. One "
    "that runs already with the same settings is used as it is; one of another profile ends for it, unless "
    "it is answering a request. Missing model files are an error with the command that fetches them.",
    "agent server stop": "Stops servers that this program started, all of them or that of one profile, and "
    "waits until they are gone.",
    "agent server restart": "Stops all servers that this program started, then starts that of one profile.",
    "agent server logs": "Prints the end of the log of a server that this program started.",
    "agent server status": "Lists the servers that this program started: profile, address, state, context "
    "in tokens, slots, memory.",
    "agent server open": "Opens the web page that llama-server has for a chat, in your browser.",
    "agent server use": "Chooses which installed llama-server is started for profiles that leave it open.",
    "agent server installed": "Lists the servers that `agent server install` built or took over.",
    "agent server uninstall": "Deletes an installed server.",
    "agent model list": "Lists the model files of all profiles once each: state, size, and the profiles "
    "that need it.",
    "agent model pull": "Fetches the model files of profiles, checks their sha256, and goes on where an "
    "earlier download stopped.",
    "agent model verify": "Reads model files through and compares their sha256 with that of the profile.",
    "agent model rm": "Deletes the model files of profiles after a question that says what else needs them.",
    "agent profile list": "Lists every profile that can be named, yours and those of the program.",
    "agent profile show": "Prints a profile as it is used, with what it extends and its model card.",
    "agent profile new": "Writes a profile of your own that starts from another one.",
    "agent profile edit": "Opens a profile of your own in $VISUAL or $EDITOR, and checks it when the editor "
    "is closed.",
    "agent profile validate": "Checks profiles, and without names the model cards too. The exit code is 2 "
    "when one is wrong.",
    "agent config show": "Prints every setting with its value and where that came from: a default, a file, "
    "a variable.",
    "agent config path": "Prints the path of your configuration file, whether or not it exists.",
    "agent config set": "Writes one setting into your configuration file. The rest of the file stays as it "
    "is, and a wrong value is refused.",
    "agent config unset": "Takes one setting out of your configuration file.",
    "agent mcp list": "Lists all MCP servers of this folder with their state, and what their tools cost in "
    "tokens.",
    "agent mcp get": "Shows how an MCP server is set up, and its tools.",
    "agent mcp remove": "Takes an MCP server out of your configuration.",
    "agent mcp test": "Connects to an MCP server, lists its tools, and ends it.",
    "agent mcp login": "Signs in to an MCP server at an address, in a browser. The sign-in is kept on this "
    "machine.",
    "agent mcp logout": "Forgets the sign-in to an MCP server.",
    "agent mcp import": "Shows the MCP servers in files of other programs, and with --yes takes them over.",
    "agent mcp logs": "Prints the end of what an MCP server said on its standard error.",
    "agent skills list": "Lists the skills that the model can use in this folder, the nearest first.",
    "agent skills show": "Prints what a skill says, which files it has and what it is allowed.",
    "agent skills new": "Writes the beginning of a skill: a folder with a SKILL.md to fill in.",
    "agent skills validate": "Checks skills against the specification. The exit code is 2 when one is wrong.",
    "agent skills add": "Copies a skill into your own folder, or with --project into this project.",
}

EXAMPLES = {
    "agent run": """agent run task.md
agent run -p 'Fix the typo in README.md' --commit
agent run -p 'Mend the tests' --check 'pytest -q' --max-seconds 600""",
    "agent setup": "agent setup --dry-run\nagent setup --yes",
    "agent doctor": "agent doctor\nagent doctor --live --profile embedded",
    "agent undo": "agent undo\nagent undo --redo\nagent undo --list\nagent undo a1b2c3",
    "agent session list": "agent session list -n 5\nagent session list --json\nagent session list | cut -f1",
    "agent session show": "agent session show\nagent session show a1b2c3 --raw",
    "agent session resume": "agent session resume\nagent session resume a1b2c3",
    "agent session fork": "agent session fork a1b2c3",
    "agent session export": "agent session export -o talk.html\nagent session export a1b2c3 --format json",
    "agent session rm": "agent session rm a1b2c3",
    "agent server start": "agent server start\nagent server start gemma4-31b-dflash",
    "agent server stop": "agent server stop\nagent server stop embedded-small --force",
    "agent server restart": "agent server restart embedded",
    "agent server logs": "agent server logs -n 200\nagent server logs embedded --follow",
    "agent server command": "agent server command gemma4-31b-dflash\n"
    "agent server command gemma4-31b-dflash --dialect bee-0.4 --one-line",
    "agent server status": "agent server status\nagent server status --json",
    "agent server open": "agent server open",
    "agent server fit": "agent server fit gemma4-31b-dflash\nagent server fit gemma4-31b-dflash --online",
    "agent server states": "agent server states\nagent server states --rm",
    "agent server install": "agent server install\nagent server install llama.cpp --cpu\n"
    "agent server install beellama --dry-run",
    "agent server use": "agent server use beellama",
    "agent server installed": "agent server installed\nagent server installed --json",
    "agent server uninstall": "agent server uninstall llama.cpp@11434",
    "agent model list": "agent model list\nagent model list --json",
    "agent model pull": "agent model pull\nagent model pull gemma4-31b-dflash",
    "agent model verify": "agent model verify embedded",
    "agent model rm": "agent model rm gemma4-31b",
    "agent bench": "agent bench\nagent bench --compare gemma4-31b gemma4-31b-dflash --html report.html",
    "agent tune": "agent tune --minutes 20\nagent tune embedded --only threads,batch",
    "agent profile list": "agent profile list",
    "agent profile show": "agent profile show embedded\nagent profile show embedded --json --origins",
    "agent profile new": "agent profile new mine --from embedded",
    "agent profile edit": "agent profile edit mine",
    "agent profile validate": "agent profile validate\nagent profile validate ./mine.toml",
    "agent config show": "agent config show\nagent config show --explain",
    "agent config path": "agent config path\nagent config path --project",
    "agent config set": "agent config set limits.max_steps 60\n"
    "agent config set permissions.allow 'shell(make *), shell(pytest *)'",
    "agent config unset": "agent config unset limits.max_steps",
    "agent mcp list": "agent mcp list",
    "agent mcp add": "agent mcp add time -- uvx mcp-server-time\n"
    "agent mcp add tracker --url https://mcp.example.com --header 'Authorization=Bearer ${TRACKER_KEY}'",
    "agent mcp get": "agent mcp get time",
    "agent mcp remove": "agent mcp remove time",
    "agent mcp test": "agent mcp test time",
    "agent mcp login": "agent mcp login tracker",
    "agent mcp logout": "agent mcp logout tracker",
    "agent mcp import": "agent mcp import\nagent mcp import .mcp.json --yes",
    "agent mcp logs": "agent mcp logs time -n 100",
    "agent skills list": "agent skills list",
    "agent skills show": "agent skills show review-a-diff",
    "agent skills new": "agent skills new release-notes --description 'Write release notes from the git log'",
    "agent skills validate": "agent skills validate\nagent skills validate .agents/skills/release-notes",
    "agent skills add": "agent skills add ~/downloads/release-notes",
    "agent acp": "agent acp\nagent acp --profile embedded --mode ask",
    "agent trust": "agent trust\nagent trust --list\nagent trust --revoke .",
}


def examples_of(command: str) -> str:
    """A paragraph for the end of its help, or empty."""
    lines = EXAMPLES.get(command, "").splitlines()
    if not lines:
        return ""
    return "\n".join(
        [f"{'examples' if len(lines) > 1 else 'example'}:", *(f"  {line}" for line in lines), ""]
    )

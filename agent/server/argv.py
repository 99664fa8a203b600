"""From a profile to the exact command line of a server. Pure: nothing is read, nothing is started.

Each concept of a profile is translated flag by flag into what this one binary knows (`agent.server.caps`).
What it cannot express is a warning where the server would still do its work, and a refusal where it would
not start, or would start and do something else than the profile says.
"""

import json
from pathlib import Path

from agent.server.argv_extra import add_extra_args
from agent.server.argv_memory import add_kv_types, add_loading, add_offload
from agent.server.argv_speculation import add_speculation
from agent.server.caps import Capabilities
from agent.server.command import Argument, Builder, Command, Notice, Places
from agent.server.profile import Profile, web_address

DEFAULT_PORT = 8910
"""For a profile with port 0, where no free one is looked for: printing a command starts nothing."""
_DEPRECATED_SWITCH = "enable_thinking"


def command_for(profile: Profile, capabilities: Capabilities, places: Places) -> Command:
    """The command that serves `profile`.

    Args:
        capabilities: of the llama-server that shall run it; profiles of other engines do not need them.
        places: where the program and the model files are.
    """
    if profile.engine == "remote":
        reason = f"profile {profile.name!r} uses a server that runs elsewhere ({profile.url})"
        return Command((), refusals=(Notice("remote", reason, "there is nothing to start for it here"),))
    if profile.engine in ("vllm", "sglang"):
        from agent.server.argv_python import python_command

        return python_command(profile, places)
    build = Builder(profile, capabilities, places)
    _add_models(build)
    add_speculation(build)
    _add_network(build)
    _add_slots(build)
    add_offload(build)
    add_kv_types(build)
    _add_prompt_cache(build)
    _add_template(build)
    add_loading(build)
    _add_observation(build)
    _add_reasoning(build)
    _add_sampling(build)
    add_extra_args(build)
    return build.command()


def _add_models(build: Builder) -> None:
    if not build.places.target:
        build.refuse("target", "the profile names no model file", "add a [target] table")
        return
    build.add(("-m", "--model"), build.places.target, "the model that answers")


def _add_network(build: Builder) -> None:
    profile, places = build.profile, build.places
    host = profile.host if places.host is None else places.host
    port = (profile.port if places.port is None else places.port) or DEFAULT_PORT
    build.add("--host", host, "reachable from this machine only" if _is_local(host) else "where it listens")
    build.add("--port", port, "the port of the API and of its web page")
    own_key = f"set api_key_file in a profile of your own: `agent profile new NAME --from {profile.name}`"
    if profile.api_key_file:
        key_file = str(Path(profile.api_key_file).expanduser())
        build.add_or_warn("api_key_file", "--api-key-file", key_file, "who may use it; one key a line")
    elif not _is_local(host):
        build.warn(
            "open-server",
            f"everybody who can reach this machine can use the server: it listens on {host} without a key",
            f"{own_key}, or host = 127.0.0.1",
        )
    # Its default lets every web page in the person's browser send requests.
    origins = profile.cors_origins or web_address(host, port)
    if not build.add("--cors-origins", origins, "web pages that may use it, besides its own"):
        if profile.cors_origins:
            build.warn("cors_origins", f"cors_origins is left out: {build.server} lets every web page in")
        elif not profile.api_key_file:
            build.warn(
                "cors",
                f"any page in a browser on this machine can use the server: {build.server} cannot close that",
                own_key,
            )


def _is_local(host: str) -> bool:
    return host in ("127.0.0.1", "localhost", "::1") or host.endswith(".sock")


def _add_slots(build: Builder) -> None:
    profile = build.profile
    build.add(("-np", "--parallel"), profile.slots, "conversations at the same time")
    if profile.unified_kv and not build.add("--kv-unified", None, "the slots share one context cache"):
        # With one slot there is nothing to share.
        if profile.slots > 1:
            effect = f"each slot has its own {profile.context} tokens"
            build.warn("unified_kv", f"unified_kv is left out: {build.server} has nothing like it", effect)
    elif profile.unified_kv and profile.slots > 1:
        # Without it one conversation may take all of the cache, and then every other one fails.
        build.add("--kv-unified-per-slot", profile.context, "of which one conversation gets this much")
    elif build.given("unified_kv") and not profile.unified_kv and profile.slots > 1:
        build.add("--no-kv-unified", None, "each slot has its own context cache")


def _add_prompt_cache(build: Builder) -> None:
    profile = build.profile
    if build.given("cache_ram_mib"):
        comment = "MiB for prompts that lost their slot"
        if not profile.cache_ram_mib:
            comment = "a prompt that loses its slot is forgotten, and read anew when it comes back"
        build.add_or_warn("cache_ram_mib", "--cache-ram", profile.cache_ram_mib, comment)
    if profile.checkpoints is not None:
        build.add_or_warn(
            "checkpoints",
            "--ctx-checkpoints",
            profile.checkpoints,
            "earlier states to go back to, for each slot",
        )
    if profile.checkpoint_step is not None:
        flags = ("--checkpoint-min-step", "--checkpoint-every-n-tokens", "--ctx-checkpoints-interval")
        build.add_or_warn("checkpoint_step", flags, profile.checkpoint_step, "tokens between two of those")
    if profile.cache_reuse is not None:
        build.add_or_warn(
            "cache_reuse", "--cache-reuse", profile.cache_reuse, "smallest piece of a prompt that is moved"
        )
    if profile.slot_similarity is not None:
        comment = "share of the prompt that has to match to get a slot again"
        build.add_or_warn("slot_similarity", "--slot-prompt-similarity", profile.slot_similarity, comment)
    # ik_llama.cpp always keeps everything, unless it is told --swa-compress.
    if profile.swa_full and not build.capabilities.knows("--swa-compress"):
        build.add_or_warn("swa_full", "--swa-full", None, "windowed layers keep everything, so it can be cut")
    if profile.slot_save_path:
        folder = str(Path(profile.slot_save_path).expanduser())
        build.add_or_warn(
            "slot_save_path", "--slot-save-path", folder, "where slots may be saved; has to exist"
        )


def _add_template(build: Builder) -> None:
    profile = build.profile
    if profile.jinja:
        build.add("--jinja", None, "tool calls need the model's own template")
    else:
        build.add("--no-jinja", None, "the model's template is not run")
    if profile.chat_template:
        build.add_or_warn("chat_template", "--chat-template", profile.chat_template, "instead of its own")
    if profile.chat_template_file:
        path = str(Path(profile.chat_template_file).expanduser())
        build.add_or_warn("chat_template_file", "--chat-template-file", path, "instead of the model's own")
    arguments = dict(profile.template_arguments)
    if profile.preserve_reasoning is not None and not build.add(
        "--reasoning-preserve" if profile.preserve_reasoning else "--no-reasoning-preserve",
        None,
        "whether earlier thoughts stay in the prompt",
    ):
        arguments["preserve_thinking"] = profile.preserve_reasoning
    if _DEPRECATED_SWITCH in arguments and build.capabilities.dialect == "llama.cpp":
        build.warn(
            "enable-thinking",
            f"template_arguments.{_DEPRECATED_SWITCH} is deprecated in llama.cpp",
            f'set reasoning = "{"on" if arguments[_DEPRECATED_SWITCH] else "off"}" instead',
        )
        if profile.reasoning is None:
            thinks = arguments.pop(_DEPRECATED_SWITCH)
            build.add("--reasoning", "on" if thinks else "off", "from template_arguments")
    if arguments:
        text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        build.add_or_warn("template_arguments", "--chat-template-kwargs", text, "what its template is told")


def _add_observation(build: Builder) -> None:
    profile = build.profile
    if profile.metrics:
        build.add("--metrics", None, "counters at /metrics, acceptance of drafts among them")
    for key, flag, comment in (
        ("log_timestamps", "--log-timestamps", "when"),
        ("log_prefix", "--log-prefix", "how serious, at the start of each line of the log"),
    ):
        wanted = getattr(profile, key)
        negative = flag.replace("--log", "--no-log")
        added = build.add(flag, None, comment) if wanted else build.add(negative)
        if not added and wanted and build.given(key):
            build.warn(key, f"{key} is left out: {build.server} has nothing like it")
    if profile.log_file:
        build.add_or_warn("log_file", "--log-file", str(Path(profile.log_file).expanduser()), "log file")
    if profile.log_verbosity is not None:
        flags = ("--log-verbosity", "--verbosity")
        build.add_or_warn("log_verbosity", flags, profile.log_verbosity, "how much it tells")


def _add_reasoning(build: Builder) -> None:
    profile = build.profile
    if profile.reasoning is not None:
        comment = {
            "on": "it thinks before it answers",
            "off": "it answers at once",
            "auto": "as its template",
        }
        build.add_or_warn("reasoning", "--reasoning", profile.reasoning, comment[profile.reasoning])
    if profile.reasoning_budget is not None:
        build.add_or_warn(
            "reasoning_budget",
            "--reasoning-budget",
            profile.reasoning_budget,
            "tokens of thought, -1 = no limit",
        )
    if profile.reasoning_format is None:
        return
    allowed = build.allowed("--reasoning-format")
    if profile.reasoning_format == "auto" and build.capabilities.dialect != "ik" and "auto" not in allowed:
        return  # the default, and taken, but not listed by every help
    if allowed and profile.reasoning_format not in allowed:
        build.refuse(
            "reasoning_format",
            f'{build.server} does not know reasoning_format = "{profile.reasoning_format}"',
            f"it knows {', '.join(allowed)}",
        )
        return
    build.add_or_warn("reasoning_format", "--reasoning-format", profile.reasoning_format, "where thoughts go")


def _add_sampling(build: Builder) -> None:
    sampling = build.profile.sampling
    for flag, value, comment in (
        ("--temp", sampling.temperature, "how freely it chooses; drafts are accepted less often with more"),
        ("--top-k", sampling.top_k, "of how many tokens it chooses"),
        ("--top-p", sampling.top_p, "of which share of the probability"),
        ("--min-p", sampling.min_p, "how likely a token must be, compared with the likeliest"),
        ("--repeat-penalty", sampling.repeat_penalty, "against repetitions, 1 = off"),
    ):
        if value is not None:
            build.add(flag, value, comment)


__all__ = ["DEFAULT_PORT", "Argument", "Command", "Notice", "Places", "command_for"]

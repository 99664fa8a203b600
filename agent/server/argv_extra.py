"""`extra_args` of a profile: passed on as they are, but not blindly."""

import re

from agent.core.likeness import did_you_mean
from agent.server.caps import Capabilities
from agent.server.command import Argument, Builder

_LOOKS_LIKE_A_FLAG = re.compile(r"-{1,2}[A-Za-z]")
_SECRETS = ("--api-key", "--hf-token", "-hft")
_OTHER_WORDS = ("1", "0", "true", "false", "enabled", "disabled")
_ROUTER = ("--models-dir", "--models-preset", "--models-autoload")


def add_extra_args(build: Builder) -> None:
    """Checks each flag against what the server knows: an unknown one would end it at once."""
    words = list(build.profile.extra_args)
    set_before = {argument.flag for argument in build.arguments}
    while words:
        flag = words.pop(0)
        if not _LOOKS_LIKE_A_FLAG.match(flag):
            build.refuse(
                "extra_args",
                f"extra_args: {flag!r} is neither a flag nor the value of one",
                "give each word as an item of its own",
            )
            continue
        # The servers read an underscore in a long flag as a dash.
        name = flag.replace("_", "-") if flag.startswith("--") else flag
        value = words.pop(0) if words and not _LOOKS_LIKE_A_FLAG.match(words[0]) else None
        if _is_usable(build, name, value):
            if name in set_before:
                build.warn("extra_args", f"extra_args gives {name} again", "the last one counts; remove one")
            build.arguments.append(Argument(name, value, "from extra_args"))


def _is_usable(build: Builder, name: str, value: str | None) -> bool:
    caps = build.capabilities
    plain = name.partition("=")[0]
    if plain in _SECRETS:
        build.refuse(
            "extra_args",
            f"extra_args: {plain} would show a secret to every user of this machine",
            "use api_key_file, or an environment variable",
        )
    elif name in caps.removed:
        instead = caps.removed[name]
        hint = f"use {instead}" if instead else "remove it"
        build.refuse("extra_args", f"extra_args: {name} is gone in {build.server}", hint)
    elif "=" in name:
        second = name.partition("=")[2]
        build.refuse("extra_args", f"extra_args: {name!r} is one word", f'write "{plain}", "{second}"')
    elif not caps.knows(name):
        return _is_tolerated(build, name)
    elif name in caps.valued and value is None:
        build.refuse("extra_args", f"extra_args: {name} needs a value", "add it as the next item")
    elif name in caps.switches and value is not None:
        build.refuse("extra_args", f"extra_args: {name} takes no value, but {value!r} follows", "remove it")
    elif (
        caps.values.get(name)
        and name != "--spec-type"
        and value not in (*caps.values[name], *_on_off(caps, name))
    ):
        known = ", ".join(caps.values[name])
        build.refuse("extra_args", f"extra_args: {name} does not take {value!r}", f"it takes {known}")
    else:
        if name in _ROUTER:
            build.warn("extra_args", f"extra_args: {name} belongs to a router without a model of its own")
        return True
    return False


def _on_off(caps: Capabilities, name: str) -> tuple[str, ...]:
    """Other words for on and off that the servers take, but do not list."""
    return _OTHER_WORDS if {"on", "off"} <= set(caps.values[name]) else ()


def _is_tolerated(build: Builder, name: str) -> bool:
    """Built-in lists may be behind the binary that will run; the binary's own help is not."""
    caps = build.capabilities
    hint = did_you_mean(name, sorted(caps.switches | caps.valued), "see its --help", form="{}")
    message = f"extra_args: {build.server} does not know {name}"
    if caps.is_built_in:
        build.warn("extra_args", message, f"{hint} Ask the program itself with --binary")
        return True
    build.refuse("extra_args", message, hint)
    return False

"""`agent mcp login` and `logout`: a person signs in to a remote server, or forgets that."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from agent.app.mcp.admin import pool_of
from agent.app.mcp.servers import signing
from agent.core.errors import UsageError
from agent.mcp.callback import Callback
from agent.mcp.config import ServerSpec, check_name, expand_server
from agent.mcp.sign_in import Interaction, Signing
from agent.mcp.tokens import token_files

SIGN_IN_SECONDS = 300.0
Open = Callable[[str], bool]


def is_signed_in(spec: ServerSpec) -> bool:
    """Whether there is a token for this server. False where its address names a variable that is not set."""
    try:
        return signing(os.environ).file_of(expand_server(spec, os.environ)).exists
    except UsageError:
        return False


async def sign_in(
    spec: ServerSpec,
    workspace: Path,
    say: Callable[[str], None],
    *,
    open_browser: Open | None = None,
    seconds: float = SIGN_IN_SECONDS,
) -> int:
    """Has the person sign in, and tries the server with it. Returns how many tools it offers then.

    Args:
        say: gets lines for the person, the address to open among them.
        open_browser: opens an address and says whether that worked; the default tries the desktop's own.
        seconds: how long the person may take.

    Raises:
        UsageError: the server is none that can be signed in to.
        AgentError: the sign-in or the connection failed.
    """
    if spec.transport == "stdio":
        raise UsageError(
            f"{spec.name} is a program, which has no sign-in here",
            "give it a key with env, as its own documentation says",
        )
    if any(name.lower() == "authorization" for name in spec.headers):
        raise UsageError(f"{spec.name} has an Authorization header, which takes the place of a sign-in")
    store = signing(os.environ)
    file = store.file_of(expand_server(spec, os.environ))
    before = file.read().get("tokens")

    async with Callback(seconds) as callback:

        async def show(address: str) -> None:
            opened = (open_browser or _open_browser)(address)
            say("a browser opens; if it does not, open this address:" if opened else "open this address:")
            say(address)
            say(f"It leads back to {callback.address}; waiting …")
            if can_paste:
                say("A browser on another machine cannot get there: paste the address that it ends at.")

        interaction = Interaction(show=show, callback=callback)
        patient = replace(spec, start_seconds=spec.start_seconds + seconds)
        with _pasting(callback) as can_paste:
            tools = await _connected(patient, workspace, Signing(store.folder, interaction))
    if file.read().get("tokens") == before:
        raise UsageError(f"{spec.name} did not ask for a sign-in; it works without one")
    return tools


async def _connected(spec: ServerSpec, workspace: Path, store: Signing) -> int:
    pool = pool_of([spec], workspace, signing=store)
    try:
        listing = await pool.list_tools([spec.name])
        if spec.name in listing.failures:
            raise listing.failures[spec.name]
        return len(listing.tools[spec.name])
    finally:
        await pool.close()


@contextmanager
def _pasting(callback: Callback) -> Iterator[bool]:
    """Takes the address that the browser ended at from the terminal: it may run on another machine."""
    loop = asyncio.get_running_loop()
    if sys.stdin is None or sys.stdin.closed or not sys.stdin.isatty():
        yield False
        return

    def read() -> None:
        line = sys.stdin.readline()
        if not line or callback.take(line):
            loop.remove_reader(sys.stdin)

    try:
        loop.add_reader(sys.stdin, read)
    except (NotImplementedError, OSError, ValueError):
        yield False
        return
    try:
        yield True
    finally:
        loop.remove_reader(sys.stdin)


def sign_out(name: str) -> int:
    """Forgets all sign-ins of that name. Returns how many there were. Raises UsageError."""
    check_name(name, "the command line")
    return sum(file.remove() for file in token_files(signing(os.environ).folder, name))


def _open_browser(address: str) -> bool:
    """Only where there is a desktop: a browser in the terminal would take over this one."""
    is_desktop = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if not is_desktop:
        return False
    import webbrowser

    try:
        return webbrowser.open(address)
    except (webbrowser.Error, OSError):
        return False

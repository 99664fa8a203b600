"""Signing in to remote servers with OAuth. The protocol is the library's; here are the person and the disk.

The library is loaded where it is used: most sessions have no such server.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.core.errors import AgentError
from agent.mcp.config import ServerSpec
from agent.mcp.tokens import TokenFile, token_file

if TYPE_CHECKING:
    from agent.mcp.callback import Callback

CLIENT_NAME = "dflash-agent"
_EARLY_SECONDS = 30.0
"""A token that ends within this time is renewed before it is used."""

Show = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """How a person signs in: `show` gets the address to open, `callback` waits for where it leads back."""

    show: Show
    callback: "Callback"


@dataclass(frozen=True, slots=True)
class Signing:
    """Sign-ins with tokens in `folder`. Only with an `interaction` a person is asked to sign in."""

    folder: Path
    interaction: Interaction | None = None

    def file_of(self, spec: ServerSpec) -> TokenFile:
        """Where the token of a server is kept. `spec` has its variables replaced."""
        return token_file(self.folder, spec)

    def auth_for(self, spec: ServerSpec) -> Any:
        """What adds tokens to requests (`httpx2.Auth`); None where nobody has signed in."""
        if any(name.lower() == "authorization" for name in spec.headers):
            return None
        file = self.file_of(spec)
        if self.interaction is None and not file.exists:
            return None  # without a token the library would register a client, just to be refused
        return _provider(spec, file, self.interaction)


def _provider(spec: ServerSpec, file: TokenFile, interaction: Interaction | None) -> Any:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata, OAuthMetadata, ProtectedResourceMetadata
    from pydantic import AnyUrl

    record = file.read()
    redirect = interaction.callback.address if interaction is not None else record.get("redirect")
    metadata = OAuthClientMetadata(
        client_name=CLIENT_NAME,
        redirect_uris=[AnyUrl(str(redirect or "http://127.0.0.1/callback"))],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )

    async def refused(*_: Any) -> Any:
        raise AgentError(
            f"the sign-in at the MCP server {spec.name} has ended",
            f"`agent mcp login {spec.name}` signs in again",
        )

    storage = _Storage(file, spec.url, is_new=interaction is not None)
    provider = OAuthClientProvider(
        server_url=spec.url,
        client_metadata=metadata,
        storage=storage,
        redirect_handler=interaction.show if interaction is not None else refused,
        callback_handler=interaction.callback.result if interaction is not None else refused,
    )
    # What the library finds out while signing in it does not keep; without it a token that has ended could
    # not be renewed, because nobody would know when it ends and where that is done.
    context = provider.context
    storage.context = context
    found = _parsed(OAuthMetadata, record.get("authorization_server"))
    if interaction is None:
        context.token_expiry_time = _number(record.get("expires_at"))
        context.oauth_metadata = found
        context.protected_resource_metadata = _parsed(ProtectedResourceMetadata, record.get("resource"))
        server = record.get("authorization_server_url")
        context.auth_server_url = server if isinstance(server, str) else None
    return provider


class _Storage:
    """The library's `TokenStorage`. With `is_new` the old record stays as it is until there is a token."""

    def __init__(self, file: TokenFile, url: str, *, is_new: bool) -> None:
        self._file = file
        self._url = url
        self._record: dict[str, Any] = {} if is_new else file.read()
        self.context: Any = None

    async def get_tokens(self) -> Any:
        from mcp.shared.auth import OAuthToken

        return _parsed(OAuthToken, self._record.get("tokens"))

    async def set_tokens(self, tokens: Any) -> None:
        context = self.context
        self._record |= {
            "url": self._url,
            "tokens": _record(tokens),
            "expires_at": time.time() + tokens.expires_in - _EARLY_SECONDS if tokens.expires_in else None,
            "authorization_server": _record(context.oauth_metadata),
            "authorization_server_url": context.auth_server_url,
            "resource": _record(context.protected_resource_metadata),
            "redirect": str(context.client_metadata.redirect_uris[0]),
        }
        self._file.write(self._record)

    async def get_client_info(self) -> Any:
        from mcp.shared.auth import OAuthClientInformationFull

        return _parsed(OAuthClientInformationFull, self._record.get("client"))

    async def set_client_info(self, client_info: Any) -> None:
        self._record["client"] = _record(client_info)


def _record(model: Any) -> Any:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)


def _parsed(kind: Any, record: Any) -> Any:
    from pydantic import ValidationError

    try:
        return None if record is None else kind.model_validate(record)
    except ValidationError:
        return None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value else None

"""An MCP server over HTTP that wants a sign-in, and the OAuth server for it, in one thread of the test.

It checks what matters: the code with its PKCE verifier, the registered address, each token. A person in a
browser is played by `visit`: it opens the address of a sign-in and follows where it leads.
"""

import base64
import hashlib
import json
import secrets
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit


@dataclass
class OAuthServer:
    """What the two know, and what a test may change: `expires_in` (seconds), `refuses`, `revoke`."""

    url: str = ""
    expires_in: int = 3600
    refuses: bool = False
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    access: set[str] = field(default_factory=set)
    refresh: set[str] = field(default_factory=set)
    grants: list[str] = field(default_factory=list)

    @property
    def mcp_url(self) -> str:
        return f"{self.url}/mcp"

    def revoke(self) -> None:
        """No token is good any more."""
        self.access.clear()
        self.refresh.clear()

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/other/token",
            "registration_endpoint": f"{self.url}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
        }

    def register(self, wish: dict[str, Any]) -> dict[str, Any]:
        client = {**wish, "client_id": secrets.token_hex(8), "token_endpoint_auth_method": "none"}
        self.clients[client["client_id"]] = client
        return client

    def authorize(self, query: dict[str, str]) -> str:
        """Where the browser is sent: back to the client."""
        back = query["redirect_uri"]
        assert back in self.clients[query["client_id"]]["redirect_uris"]
        if self.refuses:
            answer = {"error": "access_denied", "error_description": "The person said no"}
        else:
            code = secrets.token_hex(8)
            self.codes[code] = query
            answer = {"code": code}
        return f"{back}?{urlencode({**answer, 'state': query['state']})}"

    def token(self, form: dict[str, str]) -> dict[str, Any] | None:
        """Tokens; None where there are none for this."""
        self.grants.append(form["grant_type"])
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self.refresh:
                return None
            self.refresh.discard(form["refresh_token"])
        else:
            asked = self.codes.pop(form["code"], None)
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            if (
                asked is None
                or base64.urlsafe_b64encode(digest).decode().rstrip("=") != asked["code_challenge"]
            ):
                return None
        access, refresh = f"access-{secrets.token_hex(8)}", f"refresh-{secrets.token_hex(8)}"
        self.access.add(access)
        self.refresh.add(refresh)
        return {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": self.expires_in,
            "refresh_token": refresh,
        }


def visit(address: str) -> str:
    """What a person's browser does; gives the text of the page at the end."""
    with urllib.request.urlopen(address, timeout=30) as page:
        return page.read().decode("utf-8")


@contextmanager
def oauth_mcp_server() -> Iterator[OAuthServer]:
    state = OAuthServer()

    class Handler(_Handler):
        known = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    known: OAuthServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/.well-known/oauth-protected-resource/mcp":
            self._json(200, {"resource": self.known.mcp_url, "authorization_servers": [self.known.url]})
        elif parts.path == "/.well-known/oauth-authorization-server":
            self._json(200, self.known.metadata())
        elif parts.path == "/authorize":
            back = self.known.authorize({name: value[0] for name, value in parse_qs(parts.query).items()})
            self._json(302, {}, Location=back)
        else:
            self._json(404, {})

    def do_DELETE(self) -> None:
        self._json(200, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode("utf-8")
        if self.path == "/register":
            self._json(201, self.known.register(json.loads(body)))
        elif self.path == "/other/token":
            found = self.known.token({name: value[0] for name, value in parse_qs(body).items()})
            self._json(200 if found else 400, found or {"error": "invalid_grant"})
        elif self.headers.get("authorization", "").removeprefix("Bearer ") not in self.known.access:
            where = f"{self.known.url}/.well-known/oauth-protected-resource/mcp"
            self._json(401, {}, **{"WWW-Authenticate": f'Bearer resource_metadata="{where}"'})
        else:
            self._message(json.loads(body))

    def _message(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            self._json(202, None)
            return
        result: dict[str, Any] | None = None
        if message["method"] == "initialize":
            result = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            }
        elif message["method"] == "tools/list":
            result = {"tools": [{"name": "secret", "description": "", "inputSchema": {"type": "object"}}]}
        elif message["method"] == "tools/call":
            result = {"content": [{"type": "text", "text": "the secret"}]}
        answer = (
            {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
        )
        self._json(200, {"jsonrpc": "2.0", "id": message["id"], **answer})

    def _json(self, status: int, record: Any, **headers: str) -> None:
        content = b"" if record is None else json.dumps(record).encode("utf-8")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

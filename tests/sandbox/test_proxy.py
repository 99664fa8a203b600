"""The proxy of a sandbox: whom it connects to, what it says to others, and when it ends."""

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent.core.hosts import HostList
from agent.sandbox.bridge_entry import LIFELINE
from agent.sandbox.proxy import HostProxy, Rules, Verdict
from tests.patience import PATIENCE_SECONDS
from tests.sandbox.web import Web


@dataclass
class Way:
    """A proxy and its clients."""

    proxy: HostProxy
    verdicts: list[Verdict] = field(default_factory=list)
    held: list[socket.socket] = field(default_factory=list)

    def connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(20)
        client.connect(str(self.proxy.path))
        self.held.append(client)
        return client

    def ask(self, request: bytes) -> bytes:
        client = self.connect()
        client.sendall(request)
        answer = b""
        while data := client.recv(1 << 16):
            answer += data
        return answer


OpenWay = Callable[..., Way]


@pytest.fixture
def way(tmp_path: Path) -> Iterator[OpenWay]:
    opened: list[Way] = []

    def start(*hosts: str, addresses: Sequence[str] = ()) -> Way:
        async def resolve(host: str, port: int) -> Sequence[str]:
            return addresses

        verdicts: list[Verdict] = []
        rules = Rules(hosts=HostList(hosts), told=verdicts.append, resolve=resolve)
        found = Way(HostProxy(tmp_path / f"socket-{len(opened)}", rules), verdicts)
        opened.append(found)
        found.proxy.start()
        return found

    yield start
    for one in opened:
        for client in one.held:
            client.close()
        one.proxy.close()
        assert not one.proxy.is_running


def test_a_listed_host_is_reached_by_a_plain_request(way: OpenWay, web: Web):
    answer = way(web.host).ask(f"GET http://{web.host}/a?b HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"the answer to /a?b\n")


def test_a_listed_host_is_reached_by_a_tunnel(way: OpenWay, web: Web):
    client = way(web.host).connect()
    client.sendall(f"CONNECT {web.host} HTTP/1.1\r\nHost: {web.host}\r\n\r\n".encode())
    assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
    client.sendall(b"GET /inside HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = b""
    while data := client.recv(1 << 16):
        answer += data
    assert answer.endswith(b"the answer to /inside\n")


@pytest.mark.parametrize("form", ["GET http://{}/ HTTP/1.1\r\n\r\n", "CONNECT {} HTTP/1.1\r\n\r\n"])
def test_a_host_that_is_not_listed_is_refused_with_the_name_of_the_setting(way: OpenWay, web: Web, form: str):
    opened = way("example.org")
    answer = opened.ask(form.format(web.host).encode())
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert f"{web.host} is not allowed; the setting sandbox.hosts would allow it".encode() in answer
    assert web.connections == 0
    assert [(one.host, one.port, one.allowed) for one in opened.verdicts] == [("127.0.0.1", web.port, False)]


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1"])
def test_a_listed_name_that_leads_around_this_machine_is_refused(way: OpenWay, web: Web, address: str):
    answer = way("example.org", addresses=[address]).ask(
        f"GET http://example.org:{web.port}/ HTTP/1.1\r\n\r\n".encode()
    )
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert f"leads to the private address {address}".encode() in answer
    assert web.connections == 0


def test_a_listed_name_may_lead_to_an_address_that_is_listed_too(way: OpenWay, web: Web):
    opened = way("example.org", f"127.0.0.1:{web.port}", addresses=["10.0.0.1", "127.0.0.1"])
    answer = opened.ask(f"GET http://example.org:{web.port}/ HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert opened.verdicts == [Verdict("example.org", web.port, True, "listed in sandbox.hosts")]


def test_the_host_is_told_the_name_that_was_judged_and_nothing_meant_for_the_proxy(way: OpenWay, web: Web):
    way(web.host).ask(
        f"GET http://{web.host}/ HTTP/1.1\r\nHost: other.example\r\nProxy-Authorization: Basic x\r\n"
        "Connection: keep-alive, x-hop\r\nX-Hop: 1\r\nX-Kept: 2\r\n\r\n".encode()
    )
    names = {name.lower(): value for name, value in web.requests[0][1].items()}
    assert names == {"host": web.host, "x-kept": "2", "connection": "close"}


def test_the_body_of_a_request_is_passed_on(way: OpenWay, web: Web):
    way(web.host).ask(
        f"POST http://{web.host}/ HTTP/1.1\r\nConnection: content-length\r\n"
        "Content-Length: 4\r\n\r\nbody".encode()
    )
    assert web.requests[0][2] == b"body"


def test_each_connection_carries_one_request_so_that_each_is_judged(way: OpenWay, web: Web):
    answer = way(web.host).ask(f"GET http://{web.host}/ HTTP/1.1\r\nConnection: keep-alive\r\n\r\n".encode())
    assert b"\r\nConnection: close\r\n" in answer


@pytest.mark.parametrize(
    "request_head",
    [
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET https://example.org/ HTTP/1.1\r\n\r\n",
        b"CONNECT example.org HTTP/1.1\r\n\r\n",
        b"CONNECT :443 HTTP/1.1\r\n\r\n",
        b"CONNECT example.org:99999 HTTP/1.1\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET http://example.org/ HTTP/1.1\r\nA: b\nHost: c\r\n\r\n",
        b"\x00\xff HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_request_for_a_proxy_is_refused(way: OpenWay, request_head: bytes):
    assert way("example.org").ask(request_head).startswith(b"HTTP/1.1 400 ")


def test_a_listed_host_that_does_not_answer_is_said(way: OpenWay):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{unused.getsockname()[1]}"
        answer = way(host).ask(f"CONNECT {host} HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 502 ")


def test_a_head_without_end_is_given_up(way: OpenWay):
    try:
        answer = way("example.org").ask(b"x" * 200_000)
    except OSError:  # it is closed before all of that is read
        answer = b""
    assert answer == b""


def test_it_ends_with_the_last_lifeline_and_leaves_no_socket(way: OpenWay):
    opened = way("example.org")
    first, second = opened.connect(), opened.connect()
    for client in (first, second):
        client.sendall(LIFELINE)
    assert opened.ask(b"x\r\n\r\n").startswith(b"HTTP/1.1 400 ")  # by now both are held
    first.close()
    assert opened.ask(b"x\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    second.close()
    assert opened.proxy.ends_within(PATIENCE_SECONDS)
    assert not opened.proxy.path.exists()

"""Listed hosts seen from inside a real sandbox: reached by every client, and nothing else is."""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from agent.core.hosts import HostList
from agent.sandbox.commands import NEEDS_BUBBLEWRAP
from agent.sandbox.probed import Probed
from tests.patience import PATIENCE_SECONDS
from tests.sandbox.cage import Cage
from tests.sandbox.web import Web

BUBBLEWRAP = pytest.mark.only("bubblewrap")
FETCH = """
import sys, urllib.request
proxies = urllib.request.ProxyHandler() if {proxied} else urllib.request.ProxyHandler({{}})
opener = urllib.request.build_opener(proxies)
try:
    print(opener.open("http://{host}/", timeout=60).read().decode())
except OSError as error:
    print("refused:", error)
    sys.exit(1)
"""


def through_the_proxy(host: str) -> str:
    """A client that goes by HTTP_PROXY also for this machine, as it would for any other host."""
    code = FETCH.format(host=host, proxied=True)
    return f"unset no_proxy NO_PROXY; {os.path.realpath(sys.executable)} -I -c '{code}'"


@BUBBLEWRAP
def test_a_listed_host_is_reached_and_one_that_is_not_is_refused(cage: Cage, web: Web, other_web: Web):
    cage.hosts = (web.host,)
    assert "the answer to /" in cage.run(through_the_proxy(web.host)).output
    ended = cage.run(through_the_proxy(other_web.host))
    assert ended.code == 1
    assert "403" in ended.output
    assert f"{other_web.host} is not allowed; the setting sandbox.hosts would allow it" in ended.output
    assert other_web.connections == 0
    decided = [(one.port, one.allowed) for one in cage.verdicts]
    assert decided == [(web.port, True), (other_web.port, False)]


@BUBBLEWRAP
def test_a_listed_port_of_this_machine_is_there_inside_for_every_protocol(cage: Cage, web: Web):
    cage.hosts = (web.host,)
    code = FETCH.format(host=web.host, proxied=False)
    assert "the answer to /" in cage.python(code).output


@BUBBLEWRAP
def test_no_socket_reaches_anything_by_itself(cage: Cage, web: Web, other_web: Web):
    cage.hosts = (web.host,)
    other = socket.socket(socket.AF_UNIX)
    other.bind("\0agent-test-of-hosts")
    other.listen()
    code = f"""
import socket
def tried(family, kind, address):
    try:
        with socket.socket(family, kind) as one:
            one.settimeout(3)
            one.connect(address)
            one.sendall(b"x")
            return "reached"
    except OSError as error:
        return "refused"
print(tried(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", {other_web.port})))
print(tried(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 80)))
print(tried(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53)))
print(tried(socket.AF_INET6, socket.SOCK_STREAM, ("2001:db8::1", 80)))
print(tried(socket.AF_UNIX, socket.SOCK_STREAM, "\\0agent-test-of-hosts"))
try:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print("raw")
except OSError:
    print("refused")
print(sorted(name for _, name in socket.if_nameindex()))
"""
    try:
        output = cage.python(code).output.split("\n")
    finally:
        other.close()
    assert output[:7] == ["refused"] * 6 + ["['lo']"]
    assert other_web.connections == 0


@BUBBLEWRAP
def test_a_server_of_the_commands_own_is_reached_without_the_proxy(cage: Cage):
    cage.hosts = ("example.org",)
    code = """
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/", timeout=60).status)
"""
    assert cage.python(code).output.strip().endswith("200")
    assert cage.verdicts == []


@BUBBLEWRAP
def test_git_goes_by_the_proxy(cage: Cage, web: Web):
    cage.hosts = (web.host,)
    ended = cage.run(f"unset no_proxy NO_PROXY; git ls-remote http://{web.host}/repo.git")
    assert ended.code != 0  # the server knows no repositories
    assert [path.split("?")[0] for path, _, _ in web.requests] == ["/repo.git/info/refs"]
    assert "not allowed" not in ended.output
    assert cage.run("git ls-remote https://other.example/repo.git").code != 0
    assert [one.host for one in cage.verdicts] == ["127.0.0.1", "other.example"]


@BUBBLEWRAP
@pytest.mark.parametrize(("line", "code"), [("true", 0), ("exit 7", 7), ("kill -9 $$", 137), ("nosuch", 127)])
def test_the_command_ends_as_it_would_without_the_proxy(cage: Cage, line: str, code: int):
    cage.hosts = ("example.org",)
    assert cage.run(line).code == code


@BUBBLEWRAP
def test_the_proxy_ends_with_its_command_and_not_before_what_that_left_running(cage: Cage, web: Web):
    cage.hosts = (web.host,)
    sandbox = cage.sandbox()
    late = f"(sleep 0.5; {through_the_proxy(web.host)}) > late 2>&1 &"
    wrapped = asyncio.run(sandbox.confined(("bash", "-c", late), outlives=True))
    (proxy,) = sandbox._proxies
    done = subprocess.run(
        list(wrapped), cwd=cage.workspace, env=dict(cage.environment), timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 0
    assert proxy.ends_within(PATIENCE_SECONDS)
    assert "the answer to /" in (cage.workspace / "late").read_text(encoding="utf-8")
    assert not proxy.path.exists()
    sandbox.close()


@BUBBLEWRAP
def test_nothing_of_the_helper_is_in_the_way_of_the_command(cage: Cage):
    cage.hosts = ("example.org",)
    code = """
import os
try:
    os.wait()
    print("a child")
except ChildProcessError:
    print("no child")
names = [name for name in os.listdir("/proc/self/fd") if int(name) > 2]
print([name for name in names if os.path.exists(f"/proc/self/fd/{name}")])
"""
    assert cage.python(code).output.split("\n")[:2] == ["no child", "[]"]


@BUBBLEWRAP
async def test_what_was_refused_is_said_with_the_result_of_the_command(cage: Cage):
    cage.hosts = ("example.org",)
    sandbox = cage.sandbox()
    wrapped = list(await sandbox.confined(("bash", "-c", through_the_proxy("other.example"))))
    process = await asyncio.create_subprocess_exec(
        *wrapped, cwd=cage.workspace, env=dict(cage.environment), stdout=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 1
    said = sandbox.explanation("it failed")
    assert said == "(the sandbox: other.example:80 is not allowed; the setting sandbox.hosts would allow it)"
    assert sandbox.explanation("it failed") == ""
    sandbox.close()


@pytest.mark.only("landlock")
def test_landlock_reaches_none_of_the_hosts_and_says_what_is_missing(cage: Cage, web: Web):
    cage.hosts = (web.host,)
    ended = cage.python(FETCH.format(host=web.host, proxied=False))
    assert ended.code == 1
    assert web.connections == 0


async def test_where_hosts_are_listed_in_vain_a_failure_says_what_is_missing(tmp_path: Path):
    cage = Cage(Probed("landlock", "", 7), tmp_path, tmp_path, tmp_path)
    sandbox = cage.sandbox()
    sandbox.hosts = HostList(["example.org"])
    await sandbox.confined(("true",))
    assert NEEDS_BUBBLEWRAP in sandbox.explanation("Could not resolve host: example.org")
    sandbox.close()

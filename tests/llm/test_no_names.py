"""Nothing is looked up when the server is given by a number: private and local is the point."""

import subprocess
import sys
from pathlib import Path

from tests.conftest import StartServer

ROOT = Path(__file__).parents[2]
PROGRAM = """
import asyncio, ipaddress, sys

looked_up = []

def watch(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"):
        host = arguments[0][0] if isinstance(arguments[0], tuple) else arguments[0]
        host = host.decode() if isinstance(host, bytes) else host
        try:
            ipaddress.ip_address(host)
        except ValueError:
            looked_up.append(host)
            raise AssertionError(f"looked up {host!r}")

sys.addaudithook(watch)

from agent.core.guide import Offer
from agent.core.messages import UserMessage
from agent.llm.client import ChatModel, Connection
from agent.llm.protocol import NativeProtocol

async def main():
    model = ChatModel(
        Connection(base_url=sys.argv[1], api_key=""),
        NativeProtocol([]), context_tokens=0, sampling={}, cancel=asyncio.Event(),
    )
    items = [item async for item in model.generate([UserMessage("Hi")], max_tokens=9, offer=Offer())]
    await model.close()
    return items[-1]

reply = asyncio.run(main())
assert not looked_up, looked_up
print(reply.message.text or reply.error)
"""


def ask_from_a_process_of_its_own(url: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{PROGRAM}", url]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)


def test_no_name_is_looked_up_for_a_server_on_this_machine(scripted_server: StartServer):
    done = ask_from_a_process_of_its_own(scripted_server("Hello.").url)
    assert (done.stdout, done.returncode) == ("Hello.\n", 0), done.stderr


def test_the_watch_would_notice_a_name():
    done = ask_from_a_process_of_its_own("http://server.invalid:9")
    assert done.returncode != 0
    assert "looked up 'server.invalid'" in done.stderr

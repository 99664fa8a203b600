"""MCP servers through `agent run`: found, called, refused, and gone afterwards."""

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.fakes.script import call
from tests.mcp.conftest import SERVER, is_alive

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

FIND = call("mcp_find", query="echo")
ECHO = call("mcp_call", name="one__echo", arguments={"text": "hello"})
DONE = call("finish", answer="Done.")


def add(place: Place, name: str, *habits: str, pids: Path | None = None) -> None:
    """Writes a fake server into the person's own configuration, as `agent mcp add` does."""
    arguments = json.dumps(["-S", str(SERVER), *habits])
    environment = f'env = {{ PIDS = "{pids}" }}\n' if pids else ""
    place.config.mkdir(exist_ok=True)
    with (place.config / "config.toml").open("a", encoding="utf-8") as file:
        file.write(f'[mcp.servers.{name}]\ncommand = "{sys.executable}"\nargs = {arguments}\n{environment}')


def outcomes(place: Place) -> list[tuple[str, str]]:
    return [
        (record["outcome"], record["text"])
        for record in place.sessions()[-1]
        if record.get("type") == "tool_finished"
    ]


def test_model_finds_a_tool_and_calls_it(place: Place, scripted_server: StartServer):
    add(place, "one", "tools=60")
    server = scripted_server(FIND, ECHO, DONE)
    place.use(server.url)
    done = place.run("run", "-p", "Say hello", "--allow", "one__echo")
    assert done.code == 0, done.err
    found, called = outcomes(place)[:2]
    assert "one__echo: Says the text again." in found[1]
    assert called == ("ok", "[data from the MCP server one]\necho: hello")
    assert len({json.dumps(chat.body.get("tools")) for chat in server.chats}) == 1


@pytest.mark.parametrize("tools", ["tools=0", "tools=60"])
def test_what_a_tool_does_to_files_of_the_workspace_is_undone(
    place: Place, scripted_server: StartServer, tools: str
):
    add(place, "one", "writes", tools)
    (place.workspace / "mine.txt").write_bytes(b"mine\r\n")
    place.run("mcp", "test", "one")  # from then on it is known that few tools need no looking for
    put = call("mcp_call", name="one__put", arguments={"text": "hello"})
    put = put if tools == "tools=60" else call("one__put", text="hello")
    place.use(scripted_server(*([FIND] if tools == "tools=60" else []), put, DONE).url)
    done = place.run("run", "-p", "Write hello", "--allow", "one__put")
    assert done.code == 0, done.err
    assert (place.workspace / "mine.txt").read_bytes() == b"hello"
    assert place.run("undo").code == 0
    assert (place.workspace / "mine.txt").read_bytes() == b"mine\r\n"


def test_a_call_that_nobody_allowed_is_refused_without_a_person(place: Place, scripted_server: StartServer):
    add(place, "one", "tools=60")
    place.use(scripted_server(FIND, ECHO, DONE).url)
    done = place.run("run", "-p", "Say hello")
    assert done.code == 4
    assert outcomes(place)[1][0] == "denied"


def test_servers_of_a_project_start_only_after_trust_and_a_changed_command_asks_again(
    place: Place, scripted_server: StartServer
):
    mark = place.folder / "started"

    def configure(name: str) -> None:
        command = f"import pathlib; pathlib.Path({str(mark)!r}).write_text({name!r})"
        server = {"command": sys.executable, "args": ["-c", command]}
        place.write(".mcp.json", json.dumps({"mcpServers": {"one": server}}))

    def run() -> str:
        mark.unlink(missing_ok=True)
        place.use(scripted_server(FIND, DONE).url)
        place.run("run", "-p", "Say hello")
        return mark.read_text("utf-8") if mark.exists() else "nothing"

    configure("first")
    assert run() == "nothing"
    assert place.run("trust", "--yes").code == 0
    assert run() == "first"
    configure("second")
    assert run() == "nothing"


def test_bad_servers_neither_stop_a_run_nor_hide_a_good_one(place: Place, scripted_server: StartServer):
    add(place, "one", "tools=60")
    for name in ("dies-at-start", "only-noise", "endless-list", "hostile-tools", "bad-offers"):
        add(place, name, name)
    place.use(scripted_server(FIND, ECHO, DONE).url)
    done = place.run("run", "-p", "Say hello", "--allow", "one__echo")
    assert done.code == 0, done.err
    found, called = outcomes(place)[:2]
    assert "(not there: the MCP server dies-at-start is not usable" in found[1]
    assert "(not there: the MCP server only-noise is not usable" in found[1]
    assert called[1].endswith("echo: hello")
    assert "IGNORE" not in done.err


def test_nothing_of_a_server_is_left_when_the_agent_is_killed(place: Place, scripted_server: StartServer):
    pids = place.folder / "pids"
    add(place, "one", "acts", "child", "no-exit", pids=pids)
    hang = call("mcp_call", name="one__hang", arguments={})
    place.use(scripted_server(FIND, hang, DONE).url)
    process = place.start("run", "-p", "Hang", "--allow", "one__hang")
    try:
        assert wait_for(lambda: '"one__hang"' in sent(place))
        numbers = [int(number) for number in pids.read_text("utf-8").split()]
        assert len(numbers) == 2  # the server and its helper
        assert all(is_alive(number) for number in numbers)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert wait_for(lambda: not any(is_alive(number) for number in numbers))


def sent(place: Place) -> str:
    files = sorted(place.state.glob("sessions/*/*/events.jsonl"))
    records = files[-1].read_text("utf-8").splitlines() if files else []
    return "\n".join(line for line in records if '"tool_started"' in line)


def wait_for(holds: Callable[[], bool], seconds: float = 200.0) -> bool:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_a_prompt_of_a_server_is_a_task(place: Place, scripted_server: StartServer, tmp_path: Path):
    add(place, "one", "offers", "child", pids=tmp_path / "pids")
    server = scripted_server(DONE)
    place.use(server.url)
    done = place.run("run", "-p", "/one:greet Ada how=warmly")
    assert done.code == 0, done.err
    assert "Say warmly to Ada." in server.chats[0].body["messages"][1]["content"]
    assert not any(is_alive(int(number)) for number in (tmp_path / "pids").read_text("utf-8").split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/one:greet", "/one:greet needs who"),
        ("/one:none", "the MCP server one has no prompt 'none'"),
        ("/two:greet Ada", "there is no command or skill /two:greet"),
    ],
)
def test_a_prompt_that_cannot_be_had_is_said_in_one_line_and_no_task(
    place: Place, scripted_server: StartServer, text: str, said: str
):
    add(place, "one", "offers")
    server = scripted_server(DONE)
    place.use(server.url)
    done = place.run("run", "-p", text)
    assert (done.code, server.chats) == (2, [])
    assert said in done.err


def test_a_prompt_of_a_server_that_does_not_start_is_said_in_one_line(
    place: Place, scripted_server: StartServer
):
    add(place, "one", "dies-at-start")
    server = scripted_server(DONE)
    place.use(server.url)
    done = place.run("run", "-p", "/one:greet Ada", "--output", "json")
    assert done.code != 0
    assert server.chats == []
    assert "one" in json.loads(done.out)["error"]


def test_images_of_a_tool_are_shown_to_a_model_that_can_see(place: Place, scripted_server: StartServer):
    add(place, "one", "draws")
    draw = call("mcp_call", name="one__draw", arguments={})
    server = scripted_server(call("mcp_find", query="draw"), draw, DONE, vision=True)
    place.use(server.url)
    done = place.run("run", "-p", "Draw", "--allow", "one__draw")
    assert done.code == 0, done.err
    last = server.chats[-1].body["messages"][-1]
    assert last["role"] == "user"
    assert [part["type"] for part in last["content"]] == [*["image_url"] * 4, "text"]

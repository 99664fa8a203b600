"""What a run does with the context it has, and what it says of a server that keeps less than it could."""

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.fakes.script import call

pytestmark = pytest.mark.timeout(300)

WINDOW = 6_144
TOLD = ("notice", "prefix_broken", "compaction_started")


def test_run_tells_what_the_server_has_lost_and_no_result_enters_whole(
    place: Place, scripted_server: StartServer
):
    place.write("page.txt", "one word after another\n" * 600)
    place.variables["AGENT_SUBAGENTS"] = "on"
    steps = (call("task", prompt="Look."), "Nothing.", call("read", path="page.txt"), "Done.")
    server = scripted_server(*steps, n_ctx=WINDOW)
    place.use(server.url)
    done = place.run("run", "-p", "Look", "--output", "jsonl")
    assert done.code == 0
    [told] = [one for one in done.records if one["type"] in TOLD]
    assert "tokens that the server had were read again" in told["text"]
    assert "another conversation had the slot" in told["text"]
    assert " characters left out …]" in server.chats[-1].body["messages"][-1]["content"]
    assert all(chat.prompt_tokens + chat.body["max_tokens"] <= WINDOW for chat in server.chats)

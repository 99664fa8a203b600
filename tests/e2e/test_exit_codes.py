"""The exit code tells how a run went; scripts rely on it."""

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.fakes.script import Call, Step, call

pytestmark = pytest.mark.timeout(300)

MAKES_A_FILE = call("write", path="made.txt", content="made\n")
SAYS_DONE = call("finish", answer="I made it.")
NO_CALL = Step(tool_calls=(Call("read", '{"path": '),), times=0)


def test_0_when_the_model_is_done(place: Place, scripted_server: StartServer):
    place.use(scripted_server(MAKES_A_FILE, SAYS_DONE).url)
    done = place.run("run", "-p", "Make made.txt")
    assert (done.code, done.out) == (0, "I made it.\n")
    assert (place.workspace / "made.txt").read_text("utf-8") == "made\n"


def test_0_when_the_check_passes_after_its_failure_went_back(place: Place, scripted_server: StartServer):
    server = scripted_server(SAYS_DONE, MAKES_A_FILE, SAYS_DONE)
    place.use(server.url)
    done = place.run("run", "-p", "Make it", "--check", "test -f made.txt")
    assert done.code == 0
    assert "check passed: test -f made.txt" in done.err
    assert "`test -f made.txt` fails" in str(server.chats[1].body["messages"][-1])


def test_1_when_the_check_keeps_failing(place: Place, scripted_server: StartServer):
    place.use(scripted_server(Step(tool_calls=SAYS_DONE.tool_calls, times=0)).url)
    done = place.run("run", "-p", "Make it", "--check", "echo not there; false")
    assert done.code == 1
    assert "check failed: the check still fails after 3 tries: echo not there; false" in done.err


@pytest.mark.parametrize("protocol", ["native", "constrained"])
def test_1_when_the_model_answers_garbage_for_ever(place: Place, scripted_server: StartServer, protocol: str):
    server = scripted_server(NO_CALL if protocol == "native" else Step(text='{"tool": "re', times=0))
    place.profile("mine", f'engine = "remote"\nurl = "{server.url}"\ntools.protocol = "{protocol}"')
    done = place.run("run", "-p", "Make it", "--profile", "mine")
    assert done.code == 1
    assert "gave up: 3 replies in a row were unusable" in done.err
    assert len(server.chats) == 3


def test_3_when_the_steps_are_used_up(place: Place, scripted_server: StartServer):
    server = scripted_server(Step(tool_calls=(Call("glob", {"pattern": "*"}),), times=0))
    place.use(server.url)
    done = place.run("run", "-p", "Look around", "--max-steps", "2")
    assert done.code == 3
    assert "step limit: the limit of 2 steps is reached (max_steps)" in done.err
    assert len(server.chats) == 2


def test_3_when_the_seconds_are_used_up_in_mid_reply(place: Place, scripted_server: StartServer):
    place.use(scripted_server(Step(fault="pings")).url)
    done = place.run("run", "-p", "Think", "--max-seconds", "2.5")
    assert done.code == 3
    assert "the limit of 2.5 seconds is reached (max_seconds)" in done.err


def test_3_when_the_seconds_are_used_up_by_the_first_check(place: Place, scripted_server: StartServer):
    server = scripted_server(SAYS_DONE)
    place.use(server.url)
    done = place.run("run", "-p", "Think", "--max-seconds", "2.5", "--check", "sleep 600")
    assert done.code == 3
    assert "the limit of 2.5 seconds is reached (max_seconds)" in done.err
    assert server.chats == []


def test_3_when_the_tokens_are_used_up(place: Place, scripted_server: StartServer):
    looks = Step(text="I look around first.", tool_calls=(Call("glob", {"pattern": "*"}),), times=0)
    place.use(scripted_server(looks).url)
    done = place.run("run", "-p", "Look around", environment={"AGENT_LIMITS_MAX_TOKENS": "10"})
    assert done.code == 3
    assert "token limit: the limit of 10 generated tokens is reached" in done.err


def test_3_when_the_tool_calls_are_used_up_in_mid_reply(place: Place, scripted_server: StartServer):
    writes = tuple(Call("write", {"path": f"{name}.txt", "content": "x\n"}) for name in "abc")
    server = scripted_server(Step(tool_calls=writes), SAYS_DONE)
    place.use(server.url)
    done = place.run("run", "-p", "Make them", "--max-tool-calls", "2")
    assert done.code == 3
    assert "tool call limit: the limit of 2 tool calls is reached" in done.err
    assert sorted(path.name for path in place.workspace.glob("*.txt")) == ["a.txt", "b.txt"]
    assert len(server.chats) == 1


def test_3_when_the_tool_calls_of_the_settings_are_used_up(place: Place, scripted_server: StartServer):
    place.use(scripted_server(Step(tool_calls=(Call("glob", {"pattern": "*"}),), times=0)).url)
    done = place.run("run", "-p", "Look around", environment={"AGENT_LIMITS_MAX_TOOL_CALLS": "1"})
    assert done.code == 3
    assert "the limit of 1 tool call is reached" in done.err


def test_3_when_the_context_is_full(place: Place, scripted_server: StartServer):
    place.use(scripted_server(MAKES_A_FILE, SAYS_DONE, n_ctx=1_450).url)
    done = place.run("run", "-p", "Make it")
    assert done.code == 3
    assert "context full: the conversation cannot fit into 1450 tokens of context" in done.err


def test_4_when_part_of_the_work_was_denied(place: Place, scripted_server: StartServer):
    place.use(scripted_server(call("shell", command="rm -r src"), SAYS_DONE).url)
    place.write("src/a.py", "")
    done = place.run("run", "-p", "Clean up")
    assert done.code == 4
    assert 'part of the work was refused: not allowed without a person: shell "rm -r src"' in done.err
    assert "shell(rm -r src)" in done.err
    assert (place.workspace / "src/a.py").exists()


def test_0_when_the_check_proves_the_work_in_spite_of_a_denial(place: Place, scripted_server: StartServer):
    place.use(scripted_server(call("shell", command="rm -r src"), MAKES_A_FILE, SAYS_DONE).url)
    assert place.run("run", "-p", "Make it", "--check", "test -f made.txt").code == 0


def test_5_when_no_server_answers(place: Place):
    place.use("http://127.0.0.1:9/v1")
    done = place.run("run", "-p", "Hello")
    assert done.code == 5
    assert done.err.splitlines() == [
        "agent: no server answers at http://127.0.0.1:9: Connection refused",
        "hint: check that it runs, and server.url or the profile's url",
    ]


def test_6_when_the_model_file_is_missing(place: Place):
    done = place.run("run", "-p", "Hello", "--profile", "embedded-small")
    assert done.code == 6
    assert done.err.endswith("is not there\nhint: get it with `agent model pull embedded-small`\n")

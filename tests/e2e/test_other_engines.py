"""`agent run` against engines that are no llama-server: work gets done, figures say where they are from."""

import json
from typing import Any

import pytest

from tests.conftest import StartEngine, StartServer
from tests.e2e.conftest import Done, Place
from tests.fakes.script import Call, Step, call

pytestmark = pytest.mark.timeout(300)

LONG_ANSWER = "I wrote the file that you asked for, and nothing else was changed by me in this folder."


def write_call(drafted: int = 0, accepted: int = 0) -> Step:
    arguments = {"path": "made.txt", "content": "one line\nand another one\n"}
    return Step(tool_calls=(Call("write", arguments),), drafted=drafted, accepted=accepted)


def begun(done: Done) -> dict[str, Any]:
    """What the session said of itself when it began."""
    return next(record for record in done.records if record["type"] == "session_started")


def test_engine_without_timings_is_measured_here_in_every_form(place: Place, other_engine: StartEngine):
    place.use(other_engine("lm-studio", *[write_call(), LONG_ANSWER] * 3, cached=7).url)
    text = place.run("run", "-p", "Write made.txt")
    lines = place.run("run", "-p", "Write made.txt", "--output", "jsonl")
    whole = place.run("run", "-p", "Write made.txt", "--output", "json")

    assert (text.code, lines.code, whole.code) == (0, 0, 0)
    assert (place.workspace / "made.txt").read_text("utf-8") == "one line\nand another one\n"
    assert text.complaint.count("measured here") == 1
    assert "acceptance" not in text.err
    step = next(record for record in lines.records if record["type"] == "step_finished")
    assert (step["stats"]["source"], step["stats"]["draft_source"]) == ("measured", "")
    stats = json.loads(whole.out)["stats"]
    assert stats["source"] == "measured"
    assert stats["decode_tokens_per_second"] > 0
    assert stats["prefill_tokens_per_second"] > 0
    assert stats["cached_tokens"] == 14
    assert (stats["acceptance_rate"], stats["drafted_tokens"]) == (None, 0)


def test_acceptance_of_vllm_comes_from_its_metrics(place: Place, other_engine: StartEngine):
    server = other_engine("vllm", write_call(drafted=28, accepted=11), LONG_ANSWER, drafts_of=7)
    place.use(server.url)
    done = place.run("run", "-p", "Write made.txt", "--output", "json")

    stats = json.loads(done.out)["stats"]
    assert done.code == 0
    assert (stats["drafted_tokens"], stats["accepted_tokens"]) == (28, 11)
    assert (stats["draft_source"], stats["source"]) == ("engine metrics", "measured")
    assert stats["accepted_length"] == 3.75
    assert sum(stats["accepted_by_position"]) == 11
    assert "acceptance 39% (11/28 drafted tokens, engine metrics)" in done.err
    assert {body["model"] for body in server.bodies} == {"served/model"}


def test_rate_of_sglang_is_taken_as_it_gives_it(place: Place, other_engine: StartEngine):
    step = Step(text=LONG_ANSWER, drafted=28, accepted=14)
    place.use(other_engine("sglang", step, drafts_of=7).url)
    done = place.run("run", "-p", "Hello")
    assert done.code == 0
    assert "acceptance 50% (engine metrics)" in done.complaint


def test_server_that_refuses_fields_is_asked_without_and_says_so_once(
    place: Place, other_engine: StartEngine
):
    server = other_engine("strict", write_call(), LONG_ANSWER)
    place.use(server.url)
    place.variables["AGENT_SERVER_CONTEXT"] = "16384"
    done = place.run("run", "-p", "Write made.txt", "--output", "jsonl")

    notices = [record["text"] for record in done.records if record["type"] == "notice"]
    assert (done.code, done.result["files_changed"]) == (0, ["made.txt"])
    assert [text for text in notices if "asked without" in text] == [
        "the server does not know cache_prompt, return_progress, so it is asked without from now on"
    ]
    assert len(server.bodies) == 3


def test_ollama_is_asked_for_the_model_that_is_named(place: Place, other_engine: StartEngine):
    server = other_engine(
        "ollama", write_call(), LONG_ANSWER, models=("a:1b", "b:2b"), loaded=(), whole_calls=True
    )
    place.use(server.url)
    unnamed = place.run("run", "-p", "Write made.txt")
    place.variables["AGENT_SERVER_MODEL"] = "b:2b"
    named = place.run("run", "-p", "Write made.txt", "--output", "jsonl")

    assert unnamed.code == 2
    assert unnamed.complaint.endswith("(Ollama 0.14.0) has several models: a:1b, b:2b")
    assert "AGENT_SERVER_MODEL=a:1b" in unnamed.err
    assert (named.code, named.result["files_changed"]) == (0, ["made.txt"])
    assert {body["model"] for body in server.bodies} == {"b:2b"}
    assert begun(named)["model"] == f"b:2b at {server.url}"


def test_model_that_ollama_has_not_loaded_is_loaded_to_know_its_window(
    place: Place, other_engine: StartEngine
):
    server = other_engine("ollama", LONG_ANSWER, models=("a:1b",), loaded=(), context=4096)
    place.use(server.url)
    done = place.run("run", "-p", "Hello", "--output", "jsonl")
    assert (done.code, begun(done)["context_tokens"]) == (0, 4096)
    assert server.paths.count("/api/generate") == 1
    assert not [record for record in done.records if record["type"] == "notice"]


@pytest.mark.parametrize("kind", ["bare", "ollama"])
def test_no_conversation_begins_with_a_window_that_nobody_knows(
    kind: str, place: Place, other_engine: StartEngine
):
    server = other_engine(kind, LONG_ANSWER, context=0)
    place.use(server.url)
    done = place.run("run", "-p", "Say something", "--output", "jsonl")
    assert done.code == 2
    assert done.result["error"].startswith(
        f"the server at {server.url} does not say how much context the model gets"
    )
    assert "AGENT_SERVER_CONTEXT=32768" in done.result["hint"]
    assert ("OLLAMA_CONTEXT_LENGTH" in done.result["hint"]) == (kind == "ollama")
    assert server.bodies == []


@pytest.mark.parametrize("kind", ["bare", "ollama"])
def test_window_that_a_person_tells_is_taken_where_the_server_does_not_say(
    kind: str, place: Place, other_engine: StartEngine
):
    place.use(other_engine(kind, LONG_ANSWER, context=0).url)
    place.variables["AGENT_SERVER_CONTEXT"] = "9000"
    done = place.run("run", "-p", "Say something", "--output", "jsonl")
    assert (done.code, begun(done)["context_tokens"]) == (0, 9_000)


def test_window_that_a_person_tells_does_not_count_against_what_the_server_says(
    place: Place, other_engine: StartEngine
):
    place.use(other_engine("vllm", LONG_ANSWER).url)
    place.variables["AGENT_SERVER_CONTEXT"] = "9000"
    done = place.run("run", "-p", "Say something", "--output", "jsonl")
    assert (done.code, begun(done)["context_tokens"]) == (0, 16_384)


def test_less_context_than_the_profile_says_is_told_of_a_server_elsewhere(
    place: Place, other_engine: StartEngine
):
    server = other_engine("vllm", LONG_ANSWER)
    place.profile("mine", f'engine = "remote"\nurl = "{server.url}/v1"\ncontext = 99000\n')
    done = place.run("run", "-p", "Say something", "--profile", "mine", "--output", "jsonl")
    assert [one["text"] for one in done.records if "tokens of context" in one.get("text", "")] == [
        "the server gives 16384 tokens of context, not the 99000 of the profile"
    ]


def test_context_of_a_profile_counts_where_the_server_does_not_say(place: Place, other_engine: StartEngine):
    server = other_engine("ollama", LONG_ANSWER, models=("a:1b",), loaded=(), context=0)
    place.profile("mine", f'engine = "remote"\nurl = "{server.url}/v1"\nmodel = "a:1b"\ncontext = 12000\n')
    done = place.run("run", "-p", "Hello", "--profile", "mine", "--output", "jsonl")
    assert done.code == 0
    assert begun(done)["context_tokens"] == 12_000
    assert not [record for record in done.records if record["type"] == "notice"]


@pytest.mark.parametrize("kind", ["vllm", "ollama"])
def test_model_without_tool_calls_works_all_the_same(kind: str, place: Place, other_engine: StartEngine):
    finish = call("finish", answer=LONG_ANSWER)
    server = other_engine(kind, write_call(), finish, tools=False, capabilities=("completion", "tools"))
    place.use(server.url)
    done = place.run("run", "-p", "Write made.txt", "--output", "jsonl")

    assert (done.code, done.result["files_changed"]) == (0, ["made.txt"])
    notices = [record["text"] for record in done.records if record["type"] == "notice"]
    assert notices == [
        "the server takes no tool calls for this model, so replies are bound to a schema instead"
    ]


def test_ollama_model_that_says_that_it_has_no_tools_is_not_asked_for_any(
    place: Place, other_engine: StartEngine
):
    finish = call("finish", answer=LONG_ANSWER)
    server = other_engine("ollama", write_call(), finish, tools=False, capabilities=("completion",))
    place.use(server.url)
    done = place.run("run", "-p", "Write made.txt", "--output", "jsonl")
    assert done.code == 0
    assert done.records[0]["tool_protocol"] == "constrained"
    assert not [record for record in done.records if record["type"] == "notice"]


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_profile_of_a_server_for_teams_does_real_work(name: str, place: Place, other_engine: StartEngine):
    server = other_engine(name, write_call(), LONG_ANSWER)
    place.profile(
        "team",
        f'extends = "{name}"\nmodel = "served/model"\ndraft_model = "served/draft"\nport = {server.port}\n',
    )
    done = place.run("run", "-p", "Write made.txt", "--profile", "team", "--output", "jsonl")
    assert (done.code, done.result["files_changed"]) == (0, ["made.txt"])
    assert begun(done)["context_tokens"] == 16_384


def test_profile_that_names_another_model_than_the_server_has_is_refused(
    place: Place, other_engine: StartEngine
):
    server = other_engine("vllm", LONG_ANSWER)
    place.profile(
        "team", f'extends = "vllm"\nmodel = "other/one"\ndraft_model = "d/d"\nport = {server.port}\n'
    )
    done = place.run("run", "-p", "Hello", "--profile", "team")
    assert done.code == 2
    assert done.complaint.endswith("does not serve 'other/one', only served/model")
    assert server.bodies == []


def test_prompt_that_does_not_fit_is_a_limit_with_vllm_too(place: Place, scripted_server: StartServer):
    words = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."
    place.use(scripted_server({"fault": "error_event", "text": "One two", "message": words, "times": 0}).url)
    done = place.run("run", "-p", "Hello", "--output", "json")
    assert (done.code, json.loads(done.out)["reason"]) == (3, "context_full")

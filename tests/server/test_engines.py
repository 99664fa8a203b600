"""What serves at an address is told by its own endpoints, and asked for by the name that it serves."""

import json
import socket
import threading
from contextlib import suppress
from typing import Any

import pytest

from agent.core.errors import ServerError, UsageError
from agent.server.engines import EngineFacts, identify, running_servers
from agent.server.probe import Offer
from agent.server.remote import describe
from tests.conftest import StartEngine, StartServer
from tests.patience import PATIENCE_SECONDS, limits


def test_vllm_is_known_by_the_owner_of_its_model(other_engine: StartEngine):
    facts = identify(other_engine("vllm", context=40_960).url)
    assert (facts.engine, facts.version, facts.title) == ("vllm", "0.20.1", "vLLM 0.20.1")
    assert facts.model is not None
    assert (facts.model.id, facts.context_tokens) == ("served/model", 40_960)


def test_sglang_tells_its_slots_and_how_it_drafts(other_engine: StartEngine):
    facts = identify(other_engine("sglang", drafts_of=15).url)
    assert (facts.engine, facts.version, facts.slots, facts.drafting) == ("sglang", "0.5.9", 4, "DFLASH")
    assert facts.context_tokens == 16_384


def test_lm_studio_tells_which_model_is_loaded(other_engine: StartEngine):
    models = ("qwen-7b", "gemma-31b", "embed-small")
    facts = identify(other_engine("lm-studio", models=models, loaded=("gemma-31b", "embed-small")).url)
    assert facts.engine == "lm-studio"
    assert [model.id for model in facts.models] == ["qwen-7b", "gemma-31b"]
    assert facts.model is not None
    assert (facts.model.id, facts.context_tokens) == ("gemma-31b", 16_384)


def test_ollama_tells_the_context_of_a_loaded_model_and_whether_it_can_call_tools(other_engine: StartEngine):
    server = other_engine("ollama", models=("qwen:7b", "old:3b"), loaded=("qwen:7b",), context=8192)
    facts = identify(server.url)
    assert (facts.engine, facts.version, facts.context_tokens) == ("ollama", "0.14.0", 8192)
    assert facts.model is not None
    assert (facts.model.id, facts.model.tool_calls) == ("qwen:7b", True)


def test_ollama_model_that_is_not_loaded_has_the_context_of_its_own_file(other_engine: StartEngine):
    server = other_engine(
        "ollama", models=("qwen:7b",), loaded=(), parameters='stop "x"\nnum_ctx   12288', capabilities=()
    )
    facts = identify(server.url)
    assert facts.context_tokens == 12_288
    assert facts.model is not None
    assert facts.model.tool_calls is False


def test_llama_server_is_known_by_its_props(scripted_server: StartServer):
    facts = identify(scripted_server(n_ctx=4096, total_slots=2).url)
    assert (facts.engine, facts.context_tokens, facts.slots) == ("llama-server", 4096, 2)


def test_any_other_server_is_unknown_and_its_model_is_named(other_engine: StartEngine):
    facts = identify(other_engine("bare", models=("some-model",)).url)
    assert (facts.engine, facts.context_tokens) == ("unknown", 0)
    assert facts.model is not None
    assert facts.model.id == "some-model"


def test_server_that_wants_a_key_says_so(other_engine: StartEngine):
    server = other_engine("vllm", api_key="right")
    facts = identify(server.url)
    assert facts.needs_key
    assert not identify(server.url, "right").needs_key
    with pytest.raises(ServerError, match="does not accept the key"):
        describe(server.url, "wrong")


def test_llama_server_that_wants_a_key_is_found_on_its_port(scripted_server: StartServer):
    server = scripted_server(api_key="right")
    [facts] = running_servers([server.port], timeout=PATIENCE_SECONDS)
    assert (facts.engine, facts.needs_key) == ("llama-server", True)


def test_nobody_there_is_an_error():
    with pytest.raises(ServerError, match="no server answers"):
        identify("http://127.0.0.1:1")


@pytest.mark.parametrize("wanted", ["", "served/model", "/models/served/model"])
def test_model_may_be_left_out_or_named_by_its_id_or_its_folder(other_engine: StartEngine, wanted: str):
    offer = describe(other_engine("vllm").url, model=wanted)
    assert offer == Offer(16_384, 1, None, "vllm", "served/model", ("served/model", "model"))


def test_ollama_name_may_lack_its_tag(other_engine: StartEngine):
    server = other_engine("ollama", models=("qwen:latest", "other:1b"))
    assert describe(server.url, model="qwen").model == "qwen:latest"


def test_several_models_have_to_be_chosen_from(other_engine: StartEngine):
    server = other_engine("ollama", models=[f"model:{number}b" for number in range(12)])
    with pytest.raises(UsageError, match=r"several models: model:0b, .* and 4 more") as caught:
        describe(server.url)
    assert "AGENT_SERVER_MODEL=model:0b" in caught.value.hint


def test_model_that_is_not_served_is_refused_with_those_that_are(other_engine: StartEngine):
    with pytest.raises(UsageError, match=r"does not serve 'mine', only served/model"):
        describe(other_engine("vllm").url, model="mine")


def test_servers_of_this_machine_are_found_by_their_ports(
    other_engine: StartEngine, scripted_server: StartServer
):
    vllm, ollama, llama = other_engine("vllm"), other_engine("ollama"), scripted_server()
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        ports = [vllm.port, closed.getsockname()[1], silent.getsockname()[1], ollama.port, llama.port]
        for seconds in limits(0.5):
            found = running_servers(ports, timeout=seconds)
            if len(found) == 3:
                break
    assert [facts.engine for facts in found] == ["vllm", "ollama", "llama-server"]


def test_no_ports_are_no_servers():
    assert running_servers([]) == []


class OddServer:
    """Answers everything with the same bytes."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def port(self) -> int:
        return self._socket.getsockname()[1]

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                if connection.recv(65_536) == b"END":
                    return
                with suppress(OSError):  # nobody waits for it any more
                    connection.sendall(self._payload)

    def close(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as last:
            last.sendall(b"END")
        self._thread.join()
        self._socket.close()


def http(body: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    "payload",
    [
        http("<html>hello</html>"),
        http("[]"),
        http("{}"),
        http(json.dumps({"data": [1, None, {"id": 7}, {"id": "a\nb"}]})),
        http(json.dumps({"error": "Unexpected endpoint"})),
        http("", "401 Unauthorized"),
        http("[" * 100_000),
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"",
    ],
    ids=["page", "list", "object", "odd-models", "error", "key", "deep", "ssh", "nothing"],
)
def test_what_is_no_model_server_is_left_out(payload: bytes):
    server = OddServer(payload)
    found: list[EngineFacts] = running_servers([server.port], timeout=1.0)
    server.close()
    assert found == []


@pytest.mark.parametrize("value", [True, -1, "many", None, 4096.5])
def test_size_of_a_strange_kind_is_unknown(value: Any, other_engine: StartEngine):
    assert identify(other_engine("vllm", context=value).url).context_tokens == 0

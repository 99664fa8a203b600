"""DFlash really drafts: the tiny pair through `agent server start`, on the real binary and on the engine."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.server.loopback import request_json
from agent.server.record import Record, list_records
from tests.real.llama_server import real_binary, serving, write_files
from tests.real.rig import until
from tests.real.tiny_pair import BLOCK_SIZE

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
TOKENS = 400
PROMPT = {"prompt": "one two three", "n_predict": TOKENS, "ignore_eos": True, "cache_prompt": False}
# A length counts the token that the target adds itself; a rate is that of all drafts at its place in three.
SYNTHETIC = [("--spec-synth-len", "3", 2 / 3), ("--spec-synth-rates", "0.9,0.8,0.7", 0.8)]
SYNTHETIC_TOKENS = 900
SLACK = 0.15
"""Six standard deviations of the share that is accepted of so many tokens: a draw in 10^8 is further off."""
EMBEDDED_WITH_MADE_UP_ACCEPTANCE = """
import json, os, sys, urllib.request
os.environ["GGML_NO_BACKTRACE"] = "1"
import xllamacpp as engine
params = engine.CommonParams()
params.model.path, params.speculative.draft.mparams.path = sys.argv[1:3]
params.speculative.types = [engine.common_speculative_type["COMMON_SPECULATIVE_TYPE_DRAFT_DFLASH"]]
params.speculative.draft.n_max, params.speculative.synth_len = 7, 4.0
params.n_parallel, params.n_ctx, params.hostnames, params.port = 1, 512, ["127.0.0.1"], 0
params.offline = True
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = engine.Server(params)
address = "http://" + server.listening_address.removeprefix("http://") + "/completion"
request = urllib.request.Request(address, sys.argv[3].encode(), {"content-type": "application/json"})
print(urllib.request.urlopen(request).read().decode(), flush=True)
os._exit(0)
"""


class Agent:
    """The command with folders of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        own = {f"AGENT_{name.upper()}_HOME": str(folder / name) for name in ("state", "config", "cache")}
        self._environment = {**os.environ, **own, "PYTHONPATH": str(ROOT)}
        (folder / "config" / "profiles").mkdir(parents=True)
        setting = f"[server]\nbinary = {json.dumps(str(real_binary()))}\n"
        (folder / "config" / "config.toml").write_text(setting, "utf-8")

    def profile(self, engine: str, target: str, draft: str, *lines: str) -> None:
        """Writes the profile `tiny`."""
        text = [f'engine = "{engine}"', "context = 1024", "threads = 1", *lines]
        text += [f"[target]\nfile = {json.dumps(target)}", f"[draft]\nfile = {json.dumps(draft)}"]
        text += ['[speculation]\nkind = "dflash"']
        (self.folder / "config" / "profiles" / "tiny.toml").write_text("\n".join(text), "utf-8")

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "agent", *words]
        return subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True, check=False
        )

    def record(self) -> Record:
        (record,) = list_records(self.state / "run")
        return record


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_files(tmp_path_factory.mktemp("models"))


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    agent = Agent(tmp_path)
    yield agent
    agent.run("server", "stop", "--force")


def figures(record: Record) -> dict[str, Any]:
    status, answer = request_json(record.port, "POST", "/completion", record.api_key, PROMPT, 60)
    assert status == 200, answer
    return answer["timings"]


def words_of(log_file: str) -> str:
    return " ".join(Path(log_file).read_text("utf-8", "replace").split())


@pytest.mark.parametrize("engine", ["llama-server", "embedded"])
def test_server_of_a_dflash_profile_drafts(engine: str, agent: Agent, files: dict[str, str]):
    agent.profile(engine, files["target"], files["draft"])
    done = agent.run("server", "start", "tiny")
    assert done.returncode == 0, done.stderr
    record = agent.record()
    assert (record.state, record.speculates) == ("ready", True)
    assert [finding["level"] for finding in record.findings] == ["info"]
    timings = figures(record)
    assert timings["draft_n"] >= timings["predicted_n"]
    # The log is written beside the answer.
    until(lambda: f"/ {timings['draft_n']} generated)" in words_of(record.log_file))
    log = words_of(record.log_file)
    assert "adding speculative implementation 'draft-dflash'" in log
    assert f"block_size={BLOCK_SIZE}" in log


def test_accepted_tokens_are_reported_through_the_whole_path(agent: Agent, files: dict[str, str]):
    extra = 'extra_args = ["--spec-synth-len", "4"]'
    agent.profile("llama-server", files["target"], files["draft"], extra)
    done = agent.run("server", "start", "tiny")
    assert done.returncode == 0, done.stderr
    assert "its answers mean nothing" in done.stderr
    timings = figures(agent.record())
    assert timings["draft_n"] > timings["draft_n_accepted"] > 0


@pytest.mark.parametrize(("flag", "value", "expected"), SYNTHETIC, ids=["length", "rates"])
def test_made_up_acceptance_gives_real_figures(
    flag: str, value: str, expected: float, files: dict[str, str], tmp_path: Path
):
    common = ["-m", files["target"], "-c", "1024", "-np", "1", "--metrics", "-md", files["draft"]]
    with serving([*common, "--spec-type", "draft-dflash", flag, value], tmp_path) as server:
        timings = server.complete(SYNTHETIC_TOKENS)["timings"]
        metrics = server.get_text("/metrics")
    assert abs(timings["draft_n_accepted"] / timings["draft_n"] - expected) < SLACK
    assert f"spec_decode_num_accepted_tokens_total {timings['draft_n_accepted']}" in metrics


def test_made_up_acceptance_of_the_embedded_engine(files: dict[str, str]):
    words = [files["target"], files["draft"], json.dumps(PROMPT)]
    command = [sys.executable, "-c", EMBEDDED_WITH_MADE_UP_ACCEPTANCE, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    timings = json.loads(done.stdout)["timings"]
    assert timings["draft_n"] > timings["draft_n_accepted"] > 0


@pytest.mark.parametrize(
    ("target", "draft", "words"),
    [
        ("target", "wide", "does not fit"),
        ("target", "far", "does not fit"),
        ("gemma3", "draft", "does not fit"),
        ("target", "garbage", "garbage"),
        ("half", "draft", "half"),
    ],
)
@pytest.mark.parametrize("engine", ["llama-server", "embedded"])
def test_pair_that_would_abort_is_refused_in_one_line(
    engine: str, target: str, draft: str, words: str, agent: Agent, files: dict[str, str]
):
    agent.profile(engine, files[target], files[draft])
    done = agent.run("server", "start", "tiny")
    assert done.returncode == 6, done.stderr
    error, hint = done.stderr.strip().splitlines()[-2:]
    assert words in error
    assert hint.startswith("hint: ")
    assert "Traceback" not in done.stderr

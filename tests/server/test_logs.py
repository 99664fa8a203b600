"""Causes of failures, from what the engine printed. The lines are real ones."""

import signal
from pathlib import Path

import pytest

from agent.core.errors import ModelFileError, ServerError
from agent.server.logs import classify, last_line, read_tail, stage

EXITING = "0.00.007.247 E srv          init: exiting due to model loading error"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (
            "gguf_init_from_file: failed to open GGUF file '/m.gguf' (No such file or directory)",
            "file-missing",
        ),
        ("gguf_init_from_reader: invalid magic characters: 'garb', expected 'GGUF'", "file-damaged"),
        ("tensor 'a' data is not within the file bounds, model is corrupted or incomplete", "file-damaged"),
        ("llama_model_load: error loading model: unknown model architecture: 'hopper'", "architecture"),
        ("E llama_init_from_model: failed to allocate buffer for kv cache", "memory"),
        ("E srv start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 9", "port"),
        ("E quantized V cache requires flash_attn to be enabled", "parameter"),
        ("E srv load_model: failed to create_context with model '/m.gguf'", "memory"),
        ("the supplied chat template is not supported", "template"),
        ("failed to load draft model, '/d.gguf'", "vocabulary"),
        ('GGML_ASSERT(target_layer_ids_n > 0 && "DFlash model has no target_layer_ids") failed', "assertion"),
        ("agent: cannot import xllamacpp: No module named 'xllamacpp'", "engine-missing"),
        ("agent: the engine did not start: this engine does not know 'iq4_nl'", "parameter"),
    ],
)
def test_cause_is_found_before_what_follows_from_it(line: str, kind: str):
    failure = classify(f"0.00.000.278 I srv init: initializing ...\n{line}\n{EXITING}\n", 4)
    assert failure.kind == kind
    assert failure.remedy


def test_line_is_quoted_without_its_time_and_level():
    failure = classify("0.00.111.952 E srv  load:   unknown model architecture: 'x'\n", 1)
    assert failure.line == "srv load: unknown model architecture: 'x'"


def test_file_problems_are_errors_of_the_file_and_others_of_the_server():
    log = Path("/logs/server-p.log")
    damaged = classify("invalid magic characters", 1).as_error("p", log)
    unknown = classify("", 7).as_error("p", log)
    assert isinstance(damaged, ModelFileError)
    assert isinstance(unknown, ServerError)
    assert "ended with status 7" in unknown.message
    assert str(log) in unknown.hint


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (-signal.SIGKILL, "memory runs out"),
        (-signal.SIGTERM, "stopped from outside"),
        (-signal.SIGSEGV, "signal SIGSEGV"),
        (None, "it ended"),
    ],
)
def test_death_without_a_word_is_told_by_its_status(status: int | None, words: str):
    assert words in classify("I all is well\n", status).summary


def test_only_the_end_of_a_log_is_read(tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(b"a" * 1000 + "é\nend\n\n".encode())
    assert last_line(read_tail(log, 8)) == "end"
    assert read_tail(tmp_path / "missing") == ""


def test_stage_is_the_last_one_that_the_log_speaks_of():
    log = "I srv load_model: loading model '/m.gguf'\nI cmn init: threadpool init, n_threads = 2\nI chat\n"
    assert stage(log) == "preparing the context"
    assert stage("") == "starting the engine"

"""The trial of a built server, with the real one: it loads the model of random numbers and answers."""

import os
from pathlib import Path

import pytest

from agent.server.gguf import read_model
from agent.server.tiny_model import write_tiny_model
from agent.server.try_out import try_out
from tests.real.llama_server import real_binary

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_the_real_server_computes_with_random_numbers():
    trial = try_out(real_binary(), dict(os.environ), gpu=False)
    assert trial.capabilities.dialect == "llama.cpp"
    assert "4 tokens from a model of random numbers on the processor" in trial.verified


def test_the_model_of_random_numbers_is_a_proper_file(tmp_path: Path):
    write_tiny_model(tmp_path / "a.gguf")
    write_tiny_model(tmp_path / "b.gguf")
    assert (tmp_path / "a.gguf").read_bytes() == (tmp_path / "b.gguf").read_bytes()
    assert read_model(tmp_path / "a.gguf").architecture == "llama"


def test_the_model_of_random_numbers_takes_the_kernels_of_quantised_models(tmp_path: Path):
    write_tiny_model(tmp_path / "a.gguf")
    matrices = [one for one in read_model(tmp_path / "a.gguf").tensors if len(one.dimensions) == 2]
    assert {one.type_name for one in matrices} == {"Q8_0", "Q4_0"}
    assert all(size % 32 == 0 for one in matrices if one.name.startswith("blk.") for size in one.dimensions)

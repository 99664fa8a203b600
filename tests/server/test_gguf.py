"""The header of a model file: what is read, and that a bad file is one clear error, soon."""

import os
import random
import struct
from pathlib import Path

import gguf
import pytest

from agent.core.errors import ModelFileError
from agent.server.fit import ServerSettings, estimate
from agent.server.gguf import read_header, read_model, vocabulary_digest
from agent.server.gguf_types import TENSOR_TYPES, GgufArray
from agent.server.model_shape import shape_of
from tests.server import gguf_models


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gguf_models.dense(tmp_path_factory.mktemp("gguf") / "model.gguf")


def test_reads_what_the_model_is(model: Path):
    header = read_header(model)
    assert (header.architecture, header.block_count, header.embedding_length) == ("qwen3", 4, 64)
    assert (header.head_counts, header.kv_head_counts) == ((2,) * 4, (1,) * 4)
    assert (header.key_length, header.value_length, header.context_length) == (32, 32, 131072)
    assert (header.tokenizer_model, header.tokenizer_pre, header.vocabulary_size) == ("llama", "default", 320)
    assert header.file_bytes == model.stat().st_size
    assert not header.big_endian


def test_lists_the_tensors_with_their_sizes(model: Path):
    header = read_header(model)
    embedding = header.tensor("token_embd.weight")
    assert embedding is not None
    assert (embedding.dimensions, embedding.type_name, embedding.bytes) == (
        (64, 320),
        "Q5_0",
        64 * 320 // 32 * 22,
    )
    assert header.tensor("nothing.weight") is None
    assert header.file_bytes - header.tensor_bytes < 50_000


def test_keeps_short_lists_and_only_the_length_of_long_ones(model: Path, tmp_path: Path):
    drafter = gguf_models.dflash(tmp_path / "drafter.gguf", target_layers=(1, 3))
    assert read_header(drafter).numbers("dflash.target_layers") == (1, 3)
    assert read_header(model).metadata["tokenizer.ggml.tokens"] == GgufArray(320)


def test_reads_head_counts_that_differ_between_layers(tmp_path: Path):
    path = gguf_models.gemma4(tmp_path / "gemma4.gguf", layers=6, width=64, inner=128, vocabulary=320)
    assert read_header(path).kv_head_counts == (8, 8, 8, 8, 8, 2)


def test_layers_that_predict_ahead_are_not_main_layers(tmp_path: Path):
    header = read_header(gguf_models.hybrid(tmp_path / "mtp.gguf", layers=4, predicting=1))
    assert (header.block_count, header.main_layers, header.nextn_layers) == (5, 4, 1)


def test_reads_big_endian_files_the_same(model: Path, tmp_path: Path):
    keys = gguf_models.common_keys(1, 64, 2, 1, 128, 32)
    tensors: gguf_models.Shapes = [("token_embd.weight", (64, 320))]
    big = gguf_models.write_gguf(tmp_path / "big.gguf", "qwen3", keys, tensors, big_endian=True)
    header = read_header(big)
    assert header.big_endian
    assert (header.architecture, header.embedding_length, header.vocabulary_size) == ("qwen3", 64, 320)
    assert vocabulary_digest(big) == vocabulary_digest(model)


def test_reads_version_two(model: Path, tmp_path: Path):
    old = tmp_path / "old.gguf"
    content = model.read_bytes()
    old.write_bytes(content[:4] + struct.pack("<I", 2) + content[8:])
    assert read_header(old).metadata == read_header(model).metadata


def test_the_digest_of_a_vocabulary_can_leave_tokens_out(tmp_path: Path):
    tokens = gguf_models.byte_tokens(320)
    first = gguf_models.dense(tmp_path / "first.gguf")
    others = {
        "start": ["<pad>", *tokens[1:]],
        "end": [*tokens[:-1], "other"],
        "order": [*tokens[:300], tokens[301], tokens[300], *tokens[302:]],
    }
    digests = {}
    for name, changed in others.items():
        path = tmp_path / f"{name}.gguf"
        keys = gguf_models.common_keys(1, 64, 2, 1, 128, 32)
        gguf_models.write_gguf(path, "qwen3", keys, [], tokens=changed)
        digests[name] = vocabulary_digest(path), vocabulary_digest(path, first=5, last=319)
    whole, middle = vocabulary_digest(first), vocabulary_digest(first, first=5, last=319)
    assert all(one[0] != whole for one in digests.values())
    assert {name: one[1] == middle for name, one in digests.items()} == {
        "start": True,
        "end": True,
        "order": False,
    }


def test_long_vocabularies_are_stepped_over_across_chunks(tmp_path: Path):
    """More than a chunk of the file, with a token that is longer than one."""
    tokens = [*gguf_models.byte_tokens(200_000), "x" * 3_000_000, "last"]
    keys = gguf_models.common_keys(1, 64, 2, 1, 128, 32) | {"after": 7}
    path = gguf_models.write_gguf(tmp_path / "long.gguf", "qwen3", keys, [], tokens=tokens)
    header = read_header(path)
    assert (header.vocabulary_size, header.own_number("after")) == (200_002, 7)
    assert vocabulary_digest(path, last=200_001) != vocabulary_digest(path)


def test_takes_the_tensors_of_all_parts_of_a_split_model(tmp_path: Path):
    keys = gguf_models.common_keys(2, 64, 2, 1, 128, 32) | {"split.count": 2}
    parts = [tmp_path / f"model-0000{number}-of-00002.gguf" for number in (1, 2)]
    for number, part in enumerate(parts):
        name = f"blk.{number}.ffn_up.weight"
        gguf_models.write_gguf(part, "qwen3", keys | {"split.no": number}, [(name, (64, 128))])
    header = read_model(parts[0])
    assert [tensor.name for tensor in header.tensors] == ["blk.0.ffn_up.weight", "blk.1.ffn_up.weight"]
    parts[1].unlink()
    with pytest.raises(ModelFileError, match="model-00002-of-00002"):
        read_model(parts[0])


def test_a_tensor_of_a_forks_type_reaches_up_to_the_next(tmp_path: Path):
    path = gguf_models.dense(tmp_path / "model.gguf", layers=1)
    content = bytearray(path.read_bytes())
    name = b"token_embd.weight"
    at = content.index(name) + len(name) + 4 + 2 * 8
    assert struct.unpack_from("<I", content, at) == (int(gguf.GGMLQuantizationType.Q5_0),)
    struct.pack_into("<I", content, at, 222)
    path.write_bytes(content)
    tensor = read_header(path).tensor("token_embd.weight")
    assert tensor is not None
    assert (tensor.type_name, tensor.bytes) == ("type 222", 64 * 320 // 32 * 22)


def test_knows_the_sizes_of_tensor_types_as_the_format_defines_them():
    defined = {int(kind): sizes for kind, sizes in gguf.GGML_QUANT_SIZES.items()}
    assert {number: (block, size) for number, (_, block, size) in TENSOR_TYPES.items()} == {
        number: defined[number] for number in TENSOR_TYPES
    }
    names = {int(kind): kind.name for kind in gguf.GGMLQuantizationType}
    assert all(names[number] == name for number, (name, _, _) in TENSOR_TYPES.items())


def test_names_the_quantisation_of_a_file(tmp_path: Path):
    for kind in (gguf.LlamaFileType.MOSTLY_Q4_K_M, gguf.LlamaFileType.MOSTLY_IQ4_XS):
        keys = {"general.file_type": int(kind)}
        path = gguf_models.write_gguf(tmp_path / f"{kind.name}.gguf", "qwen3", keys, [])
        assert read_header(path).file_type == kind.name.removeprefix("MOSTLY_")


def test_half_a_download_is_an_error_that_says_so(model: Path, tmp_path: Path):
    half = tmp_path / "half.gguf"
    half.write_bytes(model.read_bytes()[:-1000])
    with pytest.raises(ModelFileError) as caught:
        read_header(half)
    size = model.stat().st_size
    assert str(half) in caught.value.message
    assert f"it has {size - 1000} bytes, its tensors need" in caught.value.message
    assert "half download" in caught.value.hint


def test_other_files_are_errors_that_say_what_is_wrong(tmp_path: Path):
    cases = {
        b"": "it is empty",
        b"<!doctype html><p>Not found": "it starts with b'<!do', expected b'GGUF'",
        b"GG": "it starts with b'GG'",
        b"GGUF": "incomplete or damaged",
        b"GGUF\x01\0\0\0" + bytes(16): "GGUF version 1, known are 2, 3",
        b"GGUF\x09\0\0\0" + bytes(16): "GGUF version 9",
    }
    for content, message in cases.items():
        path = tmp_path / "model.gguf"
        path.write_bytes(content)
        with pytest.raises(ModelFileError) as caught:
            read_header(path)
        assert message in caught.value.message
        assert caught.value.hint


def test_a_missing_file_is_an_error(tmp_path: Path):
    with pytest.raises(ModelFileError, match="No such file"):
        read_header(tmp_path / "missing.gguf")


def test_what_is_not_a_file_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.gguf")
    for path in (tmp_path, tmp_path / "pipe.gguf"):
        with pytest.raises(ModelFileError, match="is not a file"):
            read_header(path)


def test_a_header_that_never_ends_is_given_up(tmp_path: Path):
    path = tmp_path / "endless.gguf"
    key = struct.pack("<Q1sIIQ", 1, b"k", 9, 6, 2**40)
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + key)
        file.truncate(2**28)
    with pytest.raises(ModelFileError, match="its header has more than"):
        read_header(path)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((2**60, 1), "tensors"),
        ((1, 2**60), "keys"),
        ((1, 1), "incomplete or damaged"),
    ],
)
def test_impossible_counts_are_refused_at_once(tmp_path: Path, counts: tuple[int, int], message: str):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, *counts))
    with pytest.raises(ModelFileError, match=message):
        read_header(path)


def test_an_impossible_list_is_refused_at_once(tmp_path: Path):
    for item_kind, length in ((8, 2**62), (4, 2**62), (9, 1), (77, 1)):
        path = tmp_path / "model.gguf"
        key = struct.pack("<Q1sIIQ", 1, b"k", 9, item_kind, length)
        path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + key)
        with pytest.raises(ModelFileError):
            read_header(path)


def test_a_number_where_a_text_should_be_is_an_error_when_it_is_asked_for(tmp_path: Path):
    keys = {"block_count": "many", "embedding_length": 10**6, "attention.head_count": [2, 2]}
    header = read_header(gguf_models.write_gguf(tmp_path / "odd.gguf", "qwen3", keys, []))
    with pytest.raises(ModelFileError, match=r"qwen3\.block_count is not a usable number"):
        _ = header.block_count
    with pytest.raises(ModelFileError, match="context_length is missing"):
        _ = header.context_length


def test_only_model_file_errors_come_out_of_damaged_files(model: Path, tmp_path: Path):
    """Cuts and flipped bits anywhere in the header; what can still be read must still be usable."""
    content = model.read_bytes()
    header_end = content.rindex(b"output_norm") + 100
    chance = random.Random(7)
    damaged = tmp_path / "damaged.gguf"
    outcomes = {"refused": 0, "read": 0}
    for attempt in range(600):
        changed = bytearray(content)
        if attempt % 3 == 0:
            del changed[chance.randrange(len(content)) :]
        for _ in range(attempt % 4):
            at = chance.randrange(4, min(header_end, max(5, len(changed))))
            if at < len(changed):
                changed[at] ^= 1 << chance.randrange(8)
        damaged.write_bytes(changed)
        try:
            shape = shape_of(read_header(damaged))
            vocabulary_digest(damaged)
            estimate(shape, shape, ServerSettings(context=4096, speculation="dflash"))
            outcomes["read"] += 1
        except ModelFileError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 50

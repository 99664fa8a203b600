"""Writes a model of random numbers, a fraction of a megabyte: enough to see whether a server can compute.

It has llama's architecture, which every llama-server has known from the start, and a vocabulary of bytes. Its
weights are quantised as those of usual models are: servers have other code for them than for floating-point
numbers, and that code is what breaks where a processor announces instructions that it does not run. The
layout of the file is GGUF, version 3; see the specification in the `ggml` repository, docs/gguf.md, and
src/ggml-common.h there for the blocks.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

_WIDTH, _HEADS, _INNER, _LAYERS, _CONTEXT = 64, 2, 128, 2, 256
"""Multiples of 32 in both directions of a matrix: the special kernels of ggml (AMX, repacked) need that."""

_ALIGNMENT = 32
_UINT32, _INT32, _FLOAT32, _STRING, _ARRAY = 4, 5, 6, 8, 9
_BLOCK = 32
_F32, _Q4_0, _Q8_0 = 0, 2, 8
_LARGEST = 0.2
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6

Tensor = tuple[str, tuple[int, ...], int]
"""Name, shape, and the type of its numbers as GGUF counts them."""


def write_tiny_model(path: Path) -> None:
    """Always writes the same file.

    Raises:
        OSError: it cannot be written.
    """
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", "a", "b"]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256, *[_NORMAL] * 3]
    tensors = _tensors(len(tokens))
    keys = _keys(tokens, kinds)
    header = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(keys)) + b"".join(keys)
    infos, offset = b"", 0
    for name, shape, kind in tensors:
        infos += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        offset += _padded(_bytes_of(shape, kind))
    start = len(header) + len(infos)
    numbers = _small_numbers()
    with path.open("wb") as file:
        file.write(header + infos + b"\0" * (_padded(start) - start))
        for _, shape, kind in tensors:
            data = _data(_count(shape), kind, numbers)
            file.write(data + b"\0" * (_padded(len(data)) - len(data)))


def _data(count: int, kind: int, numbers: Iterator[int]) -> bytes:
    """Ones for the norms; else blocks of a scale and random whole numbers."""
    if kind == _F32:
        return struct.pack("<f", 1.0) * count
    scale = struct.pack("<e", _LARGEST / (128 if kind == _Q8_0 else 8))
    size = _bytes_of((_BLOCK,), kind) - len(scale)
    return b"".join(scale + bytes(islice(numbers, size)) for _ in range(count // _BLOCK))


def _bytes_of(shape: Sequence[int], kind: int) -> int:
    """A block of Q8_0 is a half-precision scale and 32 bytes, one of Q4_0 the scale and 32 half bytes."""
    per_block = {_F32: 4 * _BLOCK, _Q4_0: 2 + _BLOCK // 2, _Q8_0: 2 + _BLOCK}
    return _count(shape) * per_block[kind] // _BLOCK


def _tensors(vocabulary: int) -> list[Tensor]:
    square, wide = (_WIDTH, _WIDTH), (_WIDTH, _INNER)
    tensors: list[Tensor] = [
        ("token_embd.weight", (_WIDTH, vocabulary), _Q8_0),
        ("output_norm.weight", (_WIDTH,), _F32),
        ("output.weight", (_WIDTH, vocabulary), _Q8_0),
    ]
    for layer in range(_LAYERS):
        parts: list[Tensor] = [
            ("attn_norm", (_WIDTH,), _F32), ("attn_q", square, _Q8_0), ("attn_k", square, _Q8_0),
            ("attn_v", square, _Q8_0), ("attn_output", square, _Q8_0), ("ffn_norm", (_WIDTH,), _F32),
            ("ffn_gate", wide, _Q4_0), ("ffn_up", wide, _Q4_0), ("ffn_down", (_INNER, _WIDTH), _Q4_0),
        ]  # fmt: skip
        tensors += [(f"blk.{layer}.{name}.weight", shape, kind) for name, shape, kind in parts]
    return tensors


def _keys(tokens: Sequence[str], kinds: Sequence[int]) -> list[bytes]:
    whole = {
        "llama.context_length": _CONTEXT,
        "llama.embedding_length": _WIDTH,
        "llama.block_count": _LAYERS,
        "llama.feed_forward_length": _INNER,
        "llama.rope.dimension_count": _WIDTH // _HEADS,
        "llama.attention.head_count": _HEADS,
        "llama.attention.head_count_kv": _HEADS,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }
    names = {
        "general.architecture": "llama",
        "general.name": "random numbers",
        "tokenizer.ggml.model": "llama",
    }
    return [
        *(_text(key) + struct.pack("<I", _STRING) + _text(value) for key, value in names.items()),
        *(_text(key) + struct.pack("<II", _UINT32, value) for key, value in whole.items()),
        _text("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", _FLOAT32, 1e-5),
        _list("tokenizer.ggml.tokens", _STRING, len(tokens), b"".join(map(_text, tokens))),
        _list(
            "tokenizer.ggml.scores",
            _FLOAT32,
            len(tokens),
            struct.pack(f"<{len(tokens)}f", *[0.0] * len(tokens)),
        ),
        _list("tokenizer.ggml.token_type", _INT32, len(tokens), struct.pack(f"<{len(kinds)}i", *kinds)),
    ]


def _list(key: str, kind: int, count: int, data: bytes) -> bytes:
    return _text(key) + struct.pack("<IIQ", _ARRAY, kind, count) + data


def _text(text: str) -> bytes:
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def _small_numbers() -> Iterator[int]:
    """Bytes, the same on every machine: a linear congruential generator, of which the high bits are good."""
    state = 7
    while True:
        state = (state * 1_103_515_245 + 12_345) % 2**31
        yield state >> 23


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT

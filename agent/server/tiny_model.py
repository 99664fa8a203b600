"""Writes a model of random numbers, a fraction of a megabyte: enough to see whether a server can compute.

It has llama's architecture, which every llama-server has known from the start, and a vocabulary of bytes. The
layout of the file is GGUF, version 3; see the specification in the `ggml` repository, docs/gguf.md.
"""

import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

_WIDTH, _HEADS, _INNER, _LAYERS, _CONTEXT = 32, 2, 64, 2, 256
_ALIGNMENT = 32
_UINT32, _INT32, _FLOAT32, _STRING, _ARRAY = 4, 5, 6, 8, 9
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6

Tensor = tuple[str, tuple[int, ...]]


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
    for name, shape in tensors:
        infos += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset)
        offset += _padded(4 * _count(shape))
    start = len(header) + len(infos)
    numbers = _small_numbers()
    with path.open("wb") as file:
        file.write(header + infos + b"\0" * (_padded(start) - start))
        for name, shape in tensors:
            values = (
                [1.0] * _count(shape)
                if name.endswith("norm.weight")
                else list(islice(numbers, _count(shape)))
            )
            numbers_there = array("f", values)
            if sys.byteorder == "big":
                numbers_there.byteswap()
            data = numbers_there.tobytes()
            file.write(data + b"\0" * (_padded(len(data)) - len(data)))


def _tensors(vocabulary: int) -> list[Tensor]:
    square, wide = (_WIDTH, _WIDTH), (_WIDTH, _INNER)
    tensors: list[Tensor] = [
        ("token_embd.weight", (_WIDTH, vocabulary)),
        ("output_norm.weight", (_WIDTH,)),
        ("output.weight", (_WIDTH, vocabulary)),
    ]
    for layer in range(_LAYERS):
        parts: list[Tensor] = [
            ("attn_norm", (_WIDTH,)), ("attn_q", square), ("attn_k", square), ("attn_v", square),
            ("attn_output", square), ("ffn_norm", (_WIDTH,)), ("ffn_gate", wide), ("ffn_up", wide),
            ("ffn_down", (_INNER, _WIDTH)),
        ]  # fmt: skip
        tensors += [(f"blk.{layer}.{name}.weight", shape) for name, shape in parts]
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


def _small_numbers() -> Iterator[float]:
    """Between -0.2 and 0.2, the same on every machine: a linear congruential generator."""
    state = 7
    while True:
        state = (state * 1_103_515_245 + 12_345) % 2**31
        yield state / 2**31 * 0.4 - 0.2


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT

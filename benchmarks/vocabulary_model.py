"""Makes a tiny model of a large one: its vocabulary and its chat template, and one small layer of noise.

A server cuts texts into tokens, keeps prompts and counts as with the whole model, in a hundredth of the time.
What such a model says is noise, so its replies have to be forced. The layout of the file is GGUF, version 3;
see the specification in the `ggml` repository, docs/gguf.md, and src/ggml-common.h there for the blocks.
"""

import random
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

_START = struct.Struct("<4sIQQ")
_TEXT, _LIST, _UINT32 = 8, 9, 4
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value by its type."""

_ALIGNMENT = 32
_WIDTH = 64
"""Of the layer and of its only head, which is that of the model: its rotation is said for so many numbers."""
_SMALL = {
    "block_count": 1, "embedding_length": _WIDTH, "feed_forward_length": _WIDTH,
    "head_count": 1, "head_count_kv": 1,
}  # fmt: skip
_F32, _Q8_0 = 0, 8
_BLOCK = 32
_SCALE = struct.pack("<e", 1 / 512)
_SEED = 7


@dataclass(slots=True)
class _Cursor:
    data: bytearray
    at: int

    def number(self, form: str) -> int:
        [value] = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self) -> str:
        size = self.number("<Q")
        self.at += size
        return self.data[self.at - size : self.at].decode("utf-8")

    def skip(self, kind: int) -> None:
        if kind == _TEXT:
            size = self.number("<Q")
            self.at += size
        elif kind == _LIST:
            inner, count = self.number("<I"), self.number("<Q")
            if inner in _SIZES:
                self.at += _SIZES[inner] * count
                return
            for _ in range(count):
                self.skip(inner)
        else:
            self.at += _SIZES[kind]


def write_vocabulary_model(source: Path, path: Path, *, context: int) -> Path:
    """Writes a model of llama's architecture to `path`; the same bytes each time.

    Args:
        source: a model of that architecture whose heads have 64 numbers.
        context: tokens that it is said to be trained for; servers give a slot no more.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the model in `source` is laid out in another way.
    """
    data = bytearray(source.read_bytes())
    magic, version, tensor_count, key_count = _START.unpack_from(data)
    if magic != b"GGUF" or version != 3:
        raise ValueError(f"{source} is no GGUF file of version 3")
    cursor = _Cursor(data, _START.size)
    _say_otherwise(cursor, key_count, {**_SMALL, "context_length": context})
    keys = bytes(data[_START.size : cursor.at])
    shapes = _shapes(_words_of(cursor, tensor_count))
    noise = random.Random(_SEED)
    infos, blobs, offset = b"", [], 0
    for name, shape in shapes.items():
        kind = _F32 if len(shape) == 1 else _Q8_0
        blobs.append(struct.pack("<f", 1.0) * shape[0] if kind == _F32 else _blocks(prod(shape), noise))
        encoded = name.encode("utf-8")
        infos += struct.pack("<Q", len(encoded)) + encoded
        infos += struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        offset += len(blobs[-1])
    head = _START.pack(magic, version, len(shapes), key_count) + keys + infos
    path.write_bytes(head + bytes(-len(head) % _ALIGNMENT) + b"".join(blobs))
    return path


def _say_otherwise(cursor: _Cursor, count: int, values: Mapping[str, int]) -> None:
    """Puts other numbers behind the keys that end so. The cursor is behind the last key then."""
    left = dict(values)
    for _ in range(count):
        key, kind = cursor.text(), cursor.number("<I")
        value = left.pop(key.rpartition(".")[2], None) if kind == _UINT32 else None
        if value is not None:
            struct.pack_into("<I", cursor.data, cursor.at, value)
        cursor.skip(kind)
    if left:
        raise ValueError(f"the model does not say its {', '.join(left)}")


def _words_of(cursor: _Cursor, tensors: int) -> int:
    """How many words the vocabulary has, from the shape of the embeddings."""
    for _ in range(tensors):
        name, dimensions = cursor.text(), cursor.number("<I")
        shape = [cursor.number("<Q") for _ in range(dimensions)]
        if name == "token_embd.weight":
            return shape[1]
        cursor.at += struct.calcsize("<IQ")
    raise ValueError("the model has no embeddings")


def _shapes(words: int) -> dict[str, tuple[int, ...]]:
    square = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    layer = {f"blk.0.{name}.weight": (_WIDTH,) for name in ("attn_norm", "ffn_norm")}
    layer |= {f"blk.0.{name}.weight": (_WIDTH, _WIDTH) for name in square}
    return {"token_embd.weight": (_WIDTH, words), "output_norm.weight": (_WIDTH,), **layer}


def _blocks(numbers: int, noise: random.Random) -> bytes:
    """Random whole numbers with one scale. A multiple of the alignment, as all shapes here give."""
    data = noise.randbytes(numbers)
    return b"".join(_SCALE + data[at : at + _BLOCK] for at in range(0, numbers, _BLOCK))

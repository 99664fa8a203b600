"""Reads the header of a GGUF model file: what the model is, without loading it.

The layout is that of ggml's `docs/gguf.md`: magic, version, counts, key-values, tensor list, data. Long
arrays are stepped over, not kept, so that a vocabulary of 262,144 tokens costs no memory. The file is not
trusted: each count and length is checked against a limit and the file's size before it is used.
"""

import hashlib
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from agent.core.errors import ModelFileError
from agent.server.gguf_types import TENSOR_TYPES, GgufArray, GgufHeader, Scalar, Tensor, Value

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_CHUNK = 1024 * 1024
_LARGEST_HEADER = 64 * 1024 * 1024
"""Five times what the biggest vocabularies need; it bounds the time that a hostile file can cost."""
_MOST_KEYS = 65_536
_MOST_TENSORS = 100_000
_LONGEST_NAME = 4096
_LONGEST_TEXT = 16 * 1024 * 1024
_MOST_KEPT_NUMBERS = 4096
_MOST_KEPT_TEXTS = 64
_MOST_DIMENSIONS = 4
_LARGEST_DIMENSION = 2**40
_DEFAULT_ALIGNMENT = 32
_LARGEST_ALIGNMENT = 2**20
_TEXT, _ARRAY = 8, 9
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_PART_NAME = re.compile(r"^(.*)-(\d{5})-of-(\d{5})\.gguf$")
_MOST_PARTS = 1000
_TOKENS = "tokenizer.ggml.tokens"
_AGAIN = "remove it and get it again with `agent model pull`"


def read_header(path: Path) -> GgufHeader:
    """Reads everything before the tensor data, and makes sure that the data is all there.

    Raises:
        ModelFileError: no such file, not GGUF, an unknown version, damaged, or a half download.
    """
    with _opened(path) as stream:
        tensor_count, key_count = _counts(stream)
        metadata: dict[str, Value] = {}
        for _ in range(key_count):
            key = stream.text(_LONGEST_NAME, "the name of a key")
            if key in metadata:
                raise stream.damaged(f"the key {key!r} is there twice")
            metadata[key] = _value(stream, key)
        listed = [_listed_tensor(stream) for _ in range(tensor_count)]
        alignment = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
        if not isinstance(alignment, int) or not 0 < alignment <= _LARGEST_ALIGNMENT:
            raise stream.damaged(f"its alignment is {alignment!r}")
        data_start = -(-stream.position // alignment) * alignment
        return GgufHeader(
            path=path,
            file_bytes=stream.size,
            big_endian=stream.order == ">",
            metadata=metadata,
            tensors=_with_sizes(stream, listed, data_start),
        )


def read_general(path: Path) -> dict[str, Value]:
    """What a model file says of itself in general (`general.*`: architecture, name ...), in a millisecond.

    Only reads up to the vocabulary, and does not look whether the file is whole.

    Raises:
        ModelFileError: as `read_header`.
    """
    with _opened(path) as stream:
        _, key_count = _counts(stream)
        found: dict[str, Value] = {}
        for _ in range(key_count):
            key = stream.text(_LONGEST_NAME, "the name of a key")
            if key.startswith("tokenizer."):
                break
            value = _value(stream, key)
            if key.startswith("general."):
                found[key] = value
        return found


def read_model(path: Path) -> GgufHeader:
    """The header of a model that may be split into several files; `path` is the first of them.

    The tensors are those of all parts, everything else is from the first one.

    Raises:
        ModelFileError: as `read_header`, for any of the parts.
    """
    first = read_header(path)
    count = first.number("split.count", 1)
    if count <= 1:
        return first
    name = _PART_NAME.match(path.name)
    if not name or int(name[3]) != count or count > _MOST_PARTS:
        raise ModelFileError(
            f"{path} is one of {count} parts, but its name does not say so",
            "give the parts their original names, which end in -00001-of-00002.gguf and so on",
        )
    parts = [path.with_name(f"{name[1]}-{number:05d}-of-{name[3]}.gguf") for number in range(1, count + 1)]
    return first.with_parts([read_header(part) for part in parts if part != path])


def vocabulary_digest(path: Path, *, first: int = 0, last: int | None = None) -> str:
    """A sha256 over the tokens of a model's vocabulary in their order, to compare tokenizers.

    Args:
        first: the number of the first token that counts.
        last: the number of the first one that does not count any more, None = to the end.

    Raises:
        ModelFileError: as `read_header`, or the model has no vocabulary.
    """
    with _opened(path) as stream:
        _, key_count = _counts(stream)
        for _ in range(key_count):
            key = stream.text(_LONGEST_NAME, "the name of a key")
            if key != _TOKENS:
                _value(stream, key)
                continue
            kind, item_kind, count = stream.number("I"), stream.number("I"), stream.number("Q")
            if kind != _ARRAY or item_kind != _TEXT:
                raise stream.damaged("its vocabulary is not a list of texts")
            end = count if last is None else min(last, count)
            return _digest(stream, min(first, end), end)
    raise ModelFileError(f"{path} has no vocabulary", "choose a model file that includes its tokenizer")


@dataclass
class _Stream:
    """The file from its start, a chunk at a time; what comes next is at `offset` in `data`."""

    path: Path
    file: BinaryIO
    size: int
    order: str = "<"
    data: bytes = b""
    start: int = 0
    offset: int = 0

    @property
    def position(self) -> int:
        return self.start + self.offset

    def need(self, count: int) -> None:
        """Makes sure that the next `count` bytes are in `data`."""
        if self.offset + count <= len(self.data):
            return
        if self.position + count > self.size:
            raise ModelFileError(
                f"{self.path} is incomplete or damaged: it has {self.size} bytes, its header needs more",
                _AGAIN,
            )
        if self.position + count > _LARGEST_HEADER:
            raise self.damaged(f"its header has more than {_LARGEST_HEADER} bytes")
        rest = self.data[self.offset :]
        self.start, self.offset = self.position, 0
        self.data = rest + self.file.read(max(_CHUNK, count - len(rest)))
        if len(self.data) < count:
            raise self.damaged("it became shorter while it was read")

    def take(self, count: int) -> bytes:
        self.need(count)
        self.offset += count
        return self.data[self.offset - count : self.offset]

    def scalar(self, code: str) -> int | float:
        return struct.unpack(self.order + code, self.take(struct.calcsize(f"={code}")))[0]

    def number(self, code: str) -> int:
        return int(self.scalar(code))

    def text(self, limit: int, what: str) -> str:
        length = self.number("Q")
        if length > limit:
            raise self.damaged(f"{what} has {length} bytes")
        return self.take(length).decode("utf-8", "replace")

    def skip(self, count: int) -> None:
        while count > 0:
            step = min(count, _CHUNK)
            self.need(step)
            self.offset += step
            count -= step

    def texts(self, count: int) -> Iterator[bytes]:
        """Steps over `count` texts; gives them as they are stored, many at a time, lengths included."""
        length_at = struct.Struct(f"{self.order}Q").unpack_from
        while count:
            self.need(8)
            data, begin, after = self.data, self.offset, len(self.data)
            end, last_length = begin, after - 8
            while count and end <= last_length:
                following = end + 8 + length_at(data, end)[0]
                if following > after:
                    break
                end = following
                count -= 1
            if end > begin:
                self.offset = end
                yield data[begin:end]
            if count and end <= last_length:
                self.need(8 + length_at(data, end)[0])

    def damaged(self, what: str) -> ModelFileError:
        return ModelFileError(f"{self.path} is not a usable GGUF file: {what}", _AGAIN)


@contextmanager
def _opened(path: Path) -> Iterator[_Stream]:
    """Opens the file, reads magic and version, and finds out in which order its bytes are."""
    try:
        if path.exists() and not path.is_file():
            raise ModelFileError(f"{path} is not a file", "give the path of a model file, ending in .gguf")
        with path.open("rb") as file:
            stream = _Stream(path, file, path.stat().st_size)
            magic = file.read(4)
            if magic != _MAGIC:
                shown = "it is empty" if not magic else f"it starts with {magic!r}, expected {_MAGIC!r}"
                raise stream.damaged(shown)
            stream.start = 4
            version = stream.number("I")
            if not version & 0xFFFF:
                stream.order = ">"
                version = int.from_bytes(version.to_bytes(4, "little"), "big")
            if version not in _VERSIONS:
                raise ModelFileError(
                    f"{path} is GGUF version {version}, known are {', '.join(map(str, _VERSIONS))}",
                    "get a newer file of this model",
                )
            yield stream
    except OSError as error:
        raise ModelFileError(
            f"cannot read {path}: {error.strerror}", "check the path, or get it with `agent model pull`"
        ) from error


def _counts(stream: _Stream) -> tuple[int, int]:
    tensors, keys = stream.number("Q"), stream.number("Q")
    if tensors > _MOST_TENSORS or keys > _MOST_KEYS:
        raise stream.damaged(f"it says that it has {tensors} tensors and {keys} keys")
    return tensors, keys


def _value(stream: _Stream, key: str) -> Value:
    kind = stream.number("I")
    if kind != _ARRAY:
        return _scalar(stream, kind, key)
    item_kind, count = stream.number("I"), stream.number("Q")
    if item_kind == _TEXT:
        if count <= _MOST_KEPT_TEXTS:
            return GgufArray(count, tuple(_scalar(stream, item_kind, key) for _ in range(count)))
        for _ in stream.texts(count):
            pass
        return GgufArray(count)
    if item_kind not in _NUMBERS:
        raise stream.damaged(f"the key {key!r} is a list of an unknown type, {item_kind}")
    code = _NUMBERS[item_kind]
    size = count * struct.calcsize(f"={code}")
    if count > _MOST_KEPT_NUMBERS:
        stream.skip(size)
        return GgufArray(count)
    return GgufArray(count, struct.unpack(f"{stream.order}{count}{code}", stream.take(size)))


def _scalar(stream: _Stream, kind: int, key: str) -> Scalar:
    if kind == _TEXT:
        return stream.text(_LONGEST_TEXT, f"the value of {key!r}")
    if kind not in _NUMBERS:
        raise stream.damaged(f"the key {key!r} has an unknown type, {kind}")
    return stream.scalar(_NUMBERS[kind])


def _listed_tensor(stream: _Stream) -> Tensor:
    """An entry of the tensor list; its size is not known yet when its type is not."""
    name = stream.text(_LONGEST_NAME, "the name of a tensor")
    count = stream.number("I")
    if count > _MOST_DIMENSIONS:
        raise stream.damaged(f"the tensor {name!r} has {count} dimensions")
    dimensions = tuple(stream.number("Q") for _ in range(count))
    type_number, offset = stream.number("I"), stream.number("Q")
    elements = 1
    for length in dimensions:
        elements *= length
    if elements > _LARGEST_DIMENSION:
        raise stream.damaged(f"the tensor {name!r} has {elements} elements")
    _, block, block_bytes = TENSOR_TYPES.get(type_number, ("", 1, 0))
    if dimensions and dimensions[0] % block:
        raise stream.damaged(f"the rows of the tensor {name!r} do not fit its type")
    return Tensor(name, dimensions, type_number, offset, elements // block * block_bytes)


def _with_sizes(stream: _Stream, listed: list[Tensor], data_start: int) -> tuple[Tensor, ...]:
    """Checks that all data is there. A tensor of a type that only a fork knows reaches up to the next."""
    available = max(0, stream.size - data_start)
    starts = sorted({tensor.offset for tensor in listed} | {available})
    following = dict(pairwise(starts))
    tensors = []
    for tensor in listed:
        known = tensor.type_number in TENSOR_TYPES
        size = tensor.bytes if known else max(0, following.get(tensor.offset, 0) - tensor.offset)
        if tensor.offset + size > available:
            needed = data_start + max(one.offset + one.bytes for one in listed)
            raise ModelFileError(
                f"{stream.path} is incomplete: it has {stream.size} bytes, its tensors need {needed}",
                f"it looks like a half download: {_AGAIN}",
            )
        tensors.append(Tensor(tensor.name, tensor.dimensions, tensor.type_number, tensor.offset, size))
    return tuple(tensors)


def _digest(stream: _Stream, first: int, end: int) -> str:
    digest = hashlib.sha256()
    for _ in stream.texts(first):
        pass
    for piece in stream.texts(end - first):
        digest.update(piece if stream.order == "<" else _little_endian(piece))
    return digest.hexdigest()


def _little_endian(piece: bytes) -> bytes:
    """Texts as a little-endian file has them, so that the same tokens give the same digest."""
    parts, offset = [], 0
    while offset < len(piece):
        length = int.from_bytes(piece[offset : offset + 8], "big")
        parts += [length.to_bytes(8, "little"), piece[offset + 8 : offset + 8 + length]]
        offset += 8 + length
    return b"".join(parts)

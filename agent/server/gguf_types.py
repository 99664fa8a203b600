"""What is known about a model file from its header, see `agent.server.gguf` for the reading.

Names of keys and numbers of types are those of ggml (`gguf-py/gguf/constants.py`).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.core.errors import ModelFileError

Scalar = str | int | float

# type number: (name, weights in a block, bytes of a block)
TENSOR_TYPES = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
}

_FILE_TYPES = (
    *("F32", "F16", "Q4_0", "Q4_1", "", "", "", "Q8_0", "Q5_0", "Q5_1", "Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L"),
    *("Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K", "IQ2_XXS", "IQ2_XS", "Q2_K_S", "IQ3_XS", "IQ3_XXS"),
    *("IQ1_S", "IQ4_NL", "IQ3_S", "IQ3_M", "IQ2_S", "IQ2_M", "IQ4_XS", "IQ1_M", "BF16", "", "", "", "TQ1_0"),
    *("TQ2_0", "MXFP4_MOE"),
)
_MOST_LAYERS = 4096
_LARGEST_NUMBER = 2**40


@dataclass(frozen=True, slots=True)
class GgufArray:
    """An array of the header. `items` is empty when there are too many to keep."""

    length: int
    items: tuple[Scalar, ...] = ()


Value = Scalar | GgufArray


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor: `dimensions` with the row length first, `offset` from the start of the data."""

    name: str
    dimensions: tuple[int, ...]
    type_number: int
    offset: int
    bytes: int

    @property
    def type_name(self) -> str:
        known = TENSOR_TYPES.get(self.type_number)
        return known[0] if known else f"type {self.type_number}"


@dataclass(frozen=True)
class GgufHeader:
    """The header of a model file. Sizes in tokens, bytes or elements as the names say.

    What a model of this kind must have is asked for by property; each raises `ModelFileError` when it is
    missing or makes no sense.
    """

    path: Path
    file_bytes: int
    big_endian: bool
    metadata: Mapping[str, Value]
    tensors: tuple[Tensor, ...]

    @property
    def architecture(self) -> str:
        return self.text("general.architecture")

    @property
    def name(self) -> str:
        """The model's own name, else the file's."""
        name = self.metadata.get("general.name")
        return name if isinstance(name, str) and name else self.path.stem

    @property
    def file_type(self) -> str:
        """The quantisation, such as "Q4_K_M"; empty when it is not said or not known."""
        number = self.metadata.get("general.file_type")
        if not isinstance(number, int) or not 0 <= number < len(_FILE_TYPES):
            return ""
        return _FILE_TYPES[number]

    @property
    def tensor_bytes(self) -> int:
        return sum(tensor.bytes for tensor in self.tensors)

    @property
    def tokenizer_model(self) -> str:
        return self.text("tokenizer.ggml.model", "none")

    @property
    def tokenizer_pre(self) -> str:
        return self.text("tokenizer.ggml.pre", "default")

    @property
    def vocabulary_size(self) -> int:
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        return tokens.length if isinstance(tokens, GgufArray) else self.own_number("vocab_size", 0)

    @property
    def context_length(self) -> int:
        """The length that the model was trained with, in tokens."""
        return self.own_number("context_length")

    @property
    def block_count(self) -> int:
        """All layers, those that only predict ahead (MTP) included."""
        count = self.own_number("block_count")
        if not 0 < count <= _MOST_LAYERS:
            raise self.unusable(f"it says that it has {count} layers")
        return count

    @property
    def nextn_layers(self) -> int:
        """Layers for multi-token prediction, the last ones of the file."""
        return self.own_number("nextn_predict_layers", 0)

    @property
    def main_layers(self) -> int:
        """Layers without those for multi-token prediction, but never none."""
        return self.block_count - self.nextn_layers or self.block_count

    @property
    def embedding_length(self) -> int:
        return self.own_number("embedding_length")

    @property
    def head_counts(self) -> tuple[int, ...]:
        """Attention heads of each layer."""
        return self.per_layer("attention.head_count")

    @property
    def kv_head_counts(self) -> tuple[int, ...]:
        """KV heads of each layer; 0 where a layer keeps none."""
        if self.own("attention.head_count_kv") is None:
            return self.head_counts
        return self.per_layer("attention.head_count_kv")

    @property
    def key_length(self) -> int:
        return self.own_number("attention.key_length", self._default_head_length())

    @property
    def value_length(self) -> int:
        return self.own_number("attention.value_length", self._default_head_length())

    @property
    def sliding_window(self) -> int:
        """The window of the layers that look back only so far, 0 = none is given."""
        return self.own_number("attention.sliding_window", 0)

    def own(self, key: str) -> Value | None:
        """The value of a key that carries the architecture's name in front."""
        return self.metadata.get(f"{self.architecture}.{key}")

    def own_number(self, key: str, default: int | None = None) -> int:
        """`number` for a key that carries the architecture's name in front."""
        return self.number(f"{self.architecture}.{key}", default)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.metadata.get(key, default)
        if not isinstance(value, str):
            raise self.unusable(f"{key} is {'missing' if value is None else 'not a text'}")
        return value

    def number(self, key: str, default: int | None = None) -> int:
        value = self.metadata.get(key, default)
        if not isinstance(value, int) or not 0 <= value < _LARGEST_NUMBER:
            raise self.unusable(f"{key} is {'missing' if value is None else 'not a usable number'}")
        return value

    def numbers(self, key: str) -> tuple[int, ...] | None:
        """A list of whole numbers or booleans; a single one counts as a list. None when there is none."""
        value = self.metadata.get(key)
        if value is None:
            return None
        items = value.items if isinstance(value, GgufArray) else (value,)
        whole = tuple(int(item) for item in items if isinstance(item, int))
        if len(whole) != (value.length if isinstance(value, GgufArray) else 1):
            raise self.unusable(f"{key} is not a list of numbers")
        return whole

    def per_layer(self, key: str) -> tuple[int, ...]:
        """The values of each layer for a key that may hold one for all or a list."""
        full = f"{self.architecture}.{key}"
        count = self.block_count
        if not isinstance(self.metadata.get(full), GgufArray):
            return (self.number(full),) * count
        values = self.numbers(full) or ()
        if len(values) < count or any(not 0 <= value < _LARGEST_NUMBER for value in values):
            raise self.unusable(f"{full} does not have a usable number for each of {count} layers")
        return values[:count]

    def tensor(self, name: str) -> Tensor | None:
        return next((tensor for tensor in self.tensors if tensor.name == name), None)

    def with_parts(self, parts: Sequence["GgufHeader"]) -> "GgufHeader":
        """This header with the tensors of the other files of a model in several parts."""
        return dataclasses.replace(
            self,
            file_bytes=self.file_bytes + sum(part.file_bytes for part in parts),
            tensors=self.tensors + tuple(tensor for part in parts for tensor in part.tensors),
        )

    def unusable(self, what: str) -> ModelFileError:
        return ModelFileError(
            f"{self.path} does not describe a model that can be served: {what}",
            "choose another file of this model, it was converted incompletely or for another program",
        )

    def _default_head_length(self) -> int:
        heads = max(self.head_counts, default=0)
        return self.embedding_length // heads if heads else 0

"""Writes a target and a DFlash drafter of about a megabyte, with random weights.

A real llama-server loads the pair in a moment on one thread and really drafts with it. What it writes is
noise, and hardly a drafted token is accepted by itself; `--spec-synth-len` makes it accept some.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy

BLOCK_SIZE = 8
CONTEXT_LENGTH = 4096
LAYERS = 4
DRAFT_LAYERS = 2
TARGET_LAYERS = (1, 3)
_WIDTH, _HEADS, _KV_HEADS, _HEAD, _INNER = 64, 2, 1, 32, 128
_SPECIAL = ("<unk>", "<s>", "</s>", "<mask>")
_TURNS = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>")
_MASK = _SPECIAL.index("<mask>")
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True, slots=True)
class TinyPair:
    target: Path
    draft: Path


def write_tiny_pair(folder: Path, **of_draft: Any) -> TinyPair:
    """Writes `target.gguf` and `draft.gguf`, the same bytes each time.

    Args:
        of_draft: what is different about the drafter, see `write_drafter`.
    """
    return TinyPair(write_target(folder / "target.gguf"), write_drafter(folder / "draft.gguf", **of_draft))


def write_target(
    path: Path, *, architecture: str = "qwen3", width: int = _WIDTH, more_tokens: int = 0
) -> Path:
    """A model of four layers, for any architecture with the tensors of qwen3 or gemma3.

    Args:
        more_tokens: how many words its vocabulary has that the other models do not know.
    """
    vocabulary = len(tokens(more_tokens))
    shapes = {"token_embd.weight": (vocabulary, width), "output_norm.weight": (width,)}
    for number in range(LAYERS):
        shapes |= _layer(number, width)
        if architecture == "gemma3":
            shapes |= {f"blk.{number}.post_{name}_norm.weight": (width,) for name in ("attention", "ffw")}
    if architecture != "gemma3":
        shapes["output.weight"] = (vocabulary, width)
    keys: dict[str, Any] = {"attention.sliding_window": 512} if architecture == "gemma3" else {}
    return _write(path, architecture, LAYERS, width, shapes, keys, words=tokens(more_tokens))


def write_drafter(
    path: Path,
    *,
    architecture: str = "dflash",
    width: int = _WIDTH,
    target_layers: tuple[int, ...] | None = TARGET_LAYERS,
    block_size: int = BLOCK_SIZE,
) -> Path:
    """A drafter of two layers. It has neither embeddings nor output of its own, those are the target's.

    Args:
        target_layers: whose hidden states it reads; None leaves the key out.
    """
    shapes: dict[str, tuple[int, ...]] = {"fc.weight": (width, width * len(target_layers or TARGET_LAYERS))}
    shapes |= dict.fromkeys(("enc.output_norm.weight", "output_norm.weight"), (width,))
    for number in range(DRAFT_LAYERS):
        shapes |= _layer(number, width)
    keys: dict[str, Any] = {"block_size": block_size}
    if target_layers is not None:
        keys["target_layers"] = list(target_layers)
    return _write(path, architecture, DRAFT_LAYERS, width, shapes, keys, words=tokens(), mask=True)


def tokens(more: int = 0) -> list[str]:
    """A vocabulary that can spell everything: special tokens, all bytes, the printable ASCII characters."""
    words = [f"word{number}" for number in range(more)]
    printable = [chr(code) for code in range(ord("!"), ord("~") + 1)]
    return [*_SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *words, *printable, *_TURNS]


def _layer(number: int, width: int) -> dict[str, tuple[int, ...]]:
    block = f"blk.{number}."
    queries, keys = _HEADS * _HEAD, _KV_HEADS * _HEAD
    return {
        f"{block}attn_norm.weight": (width,),
        f"{block}attn_q.weight": (queries, width),
        f"{block}attn_k.weight": (keys, width),
        f"{block}attn_v.weight": (keys, width),
        f"{block}attn_output.weight": (width, queries),
        f"{block}attn_q_norm.weight": (_HEAD,),
        f"{block}attn_k_norm.weight": (_HEAD,),
        f"{block}ffn_norm.weight": (width,),
        f"{block}ffn_gate.weight": (_INNER, width),
        f"{block}ffn_up.weight": (_INNER, width),
        f"{block}ffn_down.weight": (width, _INNER),
    }


def _write(
    path: Path,
    architecture: str,
    layers: int,
    width: int,
    shapes: Mapping[str, tuple[int, ...]],
    keys: Mapping[str, Any],
    *,
    words: list[str],
    mask: bool = False,
) -> Path:
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(f"tiny {architecture}")
    writer.add_block_count(layers)
    writer.add_context_length(CONTEXT_LENGTH)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_KV_HEADS)
    writer.add_key_length(_HEAD)
    writer.add_value_length(_HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    for key, value in keys.items():
        name = f"{architecture}.{key}"
        if isinstance(value, list):
            writer.add_array(name, value)
        else:
            writer.add_uint32(name, value)
    _add_tokenizer(writer, words)
    if mask:
        writer.add_mask_token_id(_MASK)
    random = numpy.random.default_rng(7)
    for name, shape in shapes.items():
        norm = len(shape) == 1
        scale = 1.0 if norm else shape[-1] ** -0.5
        values = numpy.ones(shape) if norm else random.normal(0.0, scale, shape)
        writer.add_tensor(name, values.astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer: gguf.GGUFWriter, words: list[str]) -> None:
    kinds = {"<unk>": _UNKNOWN} | dict.fromkeys((*_SPECIAL[1:], *_TURNS), _CONTROL)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(words)
    writer.add_token_scores([0.0] * len(words))
    writer.add_token_types([kinds.get(word, _BYTE if word.startswith("<0x") else _NORMAL) for word in words])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    # A blank in front of every text would make a grammar's first token impossible.
    writer.add_add_space_prefix(False)
    writer.add_chat_template(_TEMPLATE)

"""Writes model files for tests: the shapes of real architectures, weights that are all zero, few layers.

The data of the tensors is a hole in the file, so that shapes of any size cost no disk space and no time.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy

Shapes = list[tuple[str, tuple[int, ...]]]
"""Names and dimensions of tensors, the length of a row first."""

_NEVER_QUANTISED = ("ssm_conv1d.weight", "ffn_gate_inp.weight")


def write_gguf(
    path: Path,
    architecture: str,
    keys: Mapping[str, Any],
    tensors: Shapes,
    *,
    tokens: list[str] | None = None,
    vocabulary: int = 320,
    quantisation: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.Q5_0,
    big_endian: bool = False,
) -> Path:
    """`keys` without a dot-prefix of their own get the architecture's; a key of None is left out."""
    order = gguf.GGUFEndian.BIG if big_endian else gguf.GGUFEndian.LITTLE
    writer = gguf.GGUFWriter(path, architecture, endianess=order)
    _add_tokenizer(writer, tokens or byte_tokens(vocabulary))
    for key, value in keys.items():
        if value is not None:
            known = key.startswith(("general.", "tokenizer.", "split."))
            _add(writer, key if known else f"{architecture}.{key}", value)
    size = 0
    for name, shape in tensors:
        plain = len(shape) == 1 or name.endswith(_NEVER_QUANTISED)
        size += _add_tensor(writer, name, shape, None if plain else quantisation)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    with path.open("r+b") as file:
        header = file.seek(0, 2)
        file.truncate(_aligned(header) + size)
    return path


def byte_tokens(count: int) -> list[str]:
    """A vocabulary for llama's tokenizer: special tokens, the bytes, and words to fill it up."""
    tokens = ["<unk>", "<s>", "</s>", "<mask>", *(f"<0x{byte:02X}>" for byte in range(256))]
    return tokens + [f"word{number}" for number in range(count - len(tokens))]


def common_keys(layers: int, width: int, heads: int, kv_heads: int, inner: int, head: int) -> dict[str, Any]:
    return {
        "block_count": layers,
        "context_length": 131072,
        "embedding_length": width,
        "feed_forward_length": inner,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.key_length": head,
        "attention.value_length": head,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": 1e6,
    }


def dense(
    path: Path,
    *,
    architecture: str = "qwen3",
    layers: int = 4,
    width: int = 64,
    heads: int = 2,
    kv_heads: int = 1,
    head: int = 32,
    inner: int = 128,
    vocabulary: int = 320,
    **more: Any,
) -> Path:
    tensors = [*_ends(width, vocabulary), ("output.weight", (width, vocabulary))]
    for number in range(layers):
        tensors += [*_attention(number, width, heads, kv_heads, head), *_feed_forward(number, width, inner)]
    keys = common_keys(layers, width, heads, kv_heads, inner, head) | more
    return write_gguf(path, architecture, keys, tensors, vocabulary=vocabulary)


def dflash(
    path: Path,
    *,
    architecture: str = "dflash",
    layers: int = 2,
    width: int = 64,
    heads: int = 2,
    kv_heads: int = 1,
    head: int = 32,
    inner: int = 128,
    vocabulary: int = 320,
    target_layers: tuple[int, ...] | None = (1, 3),
    extra_tensors: tuple[str, ...] = (),
    **more: Any,
) -> Path:
    read = len(target_layers or ())
    tensors: Shapes = [("fc.weight", (width * max(1, read), width))]
    tensors += [(name, (width,)) for name in ("enc.output_norm.weight", "output_norm.weight")]
    for number in range(layers):
        tensors += [*_attention(number, width, heads, kv_heads, head), *_feed_forward(number, width, inner)]
    tensors += [(name, (width, 32)) for name in extra_tensors]
    keys = common_keys(layers, width, heads, kv_heads, inner, head)
    keys |= {"block_size": 16, "target_layers": list(target_layers) if target_layers else None}
    keys |= {"tokenizer.ggml.mask_token_id": 3, **more}
    return write_gguf(path, architecture, keys, tensors, vocabulary=vocabulary)


def gemma3(path: Path, *, layers: int, width: int, inner: int, vocabulary: int, window: int = 1024) -> Path:
    heads, kv_heads, head = 8, 4, 256
    tensors = _ends(width, vocabulary)
    for number in range(layers):
        tensors += [*_attention(number, width, heads, kv_heads, head), *_feed_forward(number, width, inner)]
        tensors += [(f"blk.{number}.post_{name}_norm.weight", (width,)) for name in ("attention", "ffw")]
    keys = common_keys(layers, width, heads, kv_heads, inner, head)
    return write_gguf(
        path, "gemma3", keys | {"attention.sliding_window": window}, tensors, vocabulary=vocabulary
    )


def gemma4(path: Path, *, layers: int, width: int, inner: int, vocabulary: int) -> Path:
    """Five layers with a window and many small heads, then one that sees all with few large ones."""
    windowed = [number % 6 != 5 for number in range(layers)]
    heads, kv_heads, head, window_head, global_kv_heads = 16, 8, 512, 256, 2
    tensors = [*_ends(width, vocabulary), ("rope_freqs.weight", (head // 2,))]
    for number in range(layers):
        counts = (kv_heads, window_head) if windowed[number] else (global_kv_heads, head)
        attention = _attention(number, width, heads, *counts)
        # Layers that see everything use their keys as values.
        tensors += [one for one in attention if windowed[number] or "attn_v" not in one[0]]
        tensors += _feed_forward(number, width, inner)
        tensors += [(f"blk.{number}.post_{name}_norm.weight", (width,)) for name in ("attention", "ffw")]
        tensors += [(f"blk.{number}.layer_output_scale.weight", (1,))]
    keys = common_keys(layers, width, heads, kv_heads, inner, head) | {
        "attention.head_count_kv": [kv_heads if one else global_kv_heads for one in windowed],
        "attention.key_length_swa": window_head,
        "attention.value_length_swa": window_head,
        "attention.sliding_window": 1024,
        "attention.sliding_window_pattern": windowed,
        "embedding_length_per_layer_input": 0,
        "rope.freq_base_swa": 1e4,
        "rope.dimension_count": head,
        "rope.dimension_count_swa": window_head,
        "final_logit_softcapping": 30.0,
    }
    return write_gguf(path, "gemma4", keys, tensors, vocabulary=vocabulary)


def mixture(
    path: Path, *, layers: int, width: int, expert: int, experts: int, used: int, vocabulary: int
) -> Path:
    heads, kv_heads, head = 32, 4, 128
    tensors = [*_ends(width, vocabulary), ("output.weight", (width, vocabulary))]
    for number in range(layers):
        block = f"blk.{number}."
        tensors += _attention(number, width, heads, kv_heads, head)
        tensors += [(f"{block}ffn_norm.weight", (width,)), (f"{block}ffn_gate_inp.weight", (width, experts))]
        tensors += [(f"{block}ffn_{name}_exps.weight", (width, expert, experts)) for name in ("gate", "up")]
        tensors += [(f"{block}ffn_down_exps.weight", (expert, width, experts))]
    keys = common_keys(layers, width, heads, kv_heads, 3 * expert, head) | {
        "expert_count": experts,
        "expert_used_count": used,
        "expert_feed_forward_length": expert,
    }
    return write_gguf(path, "qwen3moe", keys, tensors, vocabulary=vocabulary)


def hybrid(
    path: Path,
    *,
    layers: int = 4,
    width: int = 512,
    inner: int = 1024,
    vocabulary: int = 320,
    value_heads: int = 16,
    predicting: int = 0,
    heads: int = 4,
    kv_heads: int = 2,
    head: int = 256,
) -> Path:
    """Three layers with a recurrent state to one with attention; `predicting` layers for MTP at the end."""
    key_heads, state, kernel = 16, 128, 4
    values = state * value_heads
    channels = 2 * state * key_heads + values
    tensors = _ends(width, vocabulary)
    for number in range(layers + predicting):
        block = f"blk.{number}."
        tensors += [(f"{block}post_attention_norm.weight", (width,))]
        tensors += [one for one in _feed_forward(number, width, inner) if "norm" not in one[0]]
        if (number + 1) % 4 == 0 or number >= layers:
            attention = _attention(number, width, heads, kv_heads, head)
            gated = (f"{block}attn_q.weight", (width, 2 * heads * head))
            tensors += [gated if name == gated[0] else (name, shape) for name, shape in attention]
        else:
            tensors += _recurrent_layer(block, width, channels, values, value_heads, state, kernel)
        if number >= layers:
            tensors += [(f"{block}nextn.eh_proj.weight", (2 * width, width))]
            names = ("enorm", "hnorm", "shared_head_norm")
            tensors += [(f"{block}nextn.{name}.weight", (width,)) for name in names]
    keys = common_keys(layers + predicting, width, heads, kv_heads, inner, head) | {
        "ssm.conv_kernel": kernel,
        "ssm.inner_size": values,
        "ssm.state_size": state,
        "ssm.time_step_rank": value_heads,
        "ssm.group_count": key_heads,
        "full_attention_interval": 4,
        "rope.dimension_sections": [11, 11, 10, 0],
        "rope.dimension_count": 64,
        "nextn_predict_layers": predicting or None,
    }
    return write_gguf(path, "qwen35", keys, tensors, vocabulary=vocabulary)


def _recurrent_layer(
    block: str, width: int, channels: int, values: int, value_heads: int, state: int, kernel: int
) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{block}attn_norm.weight", (width,)
    yield f"{block}attn_qkv.weight", (width, channels)
    yield f"{block}attn_gate.weight", (width, values)
    yield f"{block}ssm_conv1d.weight", (kernel, channels)
    yield f"{block}ssm_dt.bias", (value_heads,)
    yield f"{block}ssm_a", (value_heads,)
    yield f"{block}ssm_beta.weight", (width, value_heads)
    yield f"{block}ssm_alpha.weight", (width, value_heads)
    yield f"{block}ssm_norm.weight", (state,)
    yield f"{block}ssm_out.weight", (values, width)


def _ends(width: int, vocabulary: int) -> Shapes:
    return [("token_embd.weight", (width, vocabulary)), ("output_norm.weight", (width,))]


def _attention(number: int, width: int, heads: int, kv_heads: int, head: int) -> Shapes:
    block = f"blk.{number}.attn_"
    return [
        (f"{block}norm.weight", (width,)),
        (f"{block}q.weight", (width, heads * head)),
        (f"{block}k.weight", (width, kv_heads * head)),
        (f"{block}v.weight", (width, kv_heads * head)),
        (f"{block}output.weight", (heads * head, width)),
        (f"{block}q_norm.weight", (head,)),
        (f"{block}k_norm.weight", (head,)),
    ]


def _feed_forward(number: int, width: int, inner: int) -> Shapes:
    block = f"blk.{number}.ffn_"
    return [
        (f"{block}norm.weight", (width,)),
        (f"{block}gate.weight", (width, inner)),
        (f"{block}up.weight", (width, inner)),
        (f"{block}down.weight", (inner, width)),
    ]


def _add_tokenizer(writer: gguf.GGUFWriter, tokens: list[str]) -> None:
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    kinds = [2, 3, 3, 3] + [6] * 256 + [1] * len(tokens)
    writer.add_token_types(kinds[: len(tokens)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(False)
    writer.add_chat_template("{% for message in messages %}{{ message.content }}{% endfor %}")


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def _add_tensor(
    writer: gguf.GGUFWriter,
    name: str,
    shape: tuple[int, ...],
    quantisation: gguf.GGMLQuantizationType | None,
) -> int:
    kind = quantisation or gguf.GGMLQuantizationType.F32
    block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    elements = 1
    for length in shape:
        elements *= length
    size = elements // block * block_bytes
    dimensions = list(reversed(shape))
    if quantisation is None:
        writer.add_tensor_info(name, dimensions, numpy.dtype(numpy.float32), size)
    else:
        dimensions[-1] = dimensions[-1] // block * block_bytes
        writer.add_tensor_info(name, dimensions, numpy.dtype(numpy.uint8), size, raw_dtype=kind)
    return _aligned(size)


def _aligned(size: int) -> int:
    return -(-size // 32) * 32

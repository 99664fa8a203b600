"""Writes a trained drafter as a GGUF file of architecture `dflash`.

    python export.py --target MODEL.gguf --drafter drafter.pt --out drafter.gguf [--type q8_0]

The tokenizer is the target's, with the token that stands for a gap added as its mask token.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy
import torch
from saved import load_drafter
from target import LAYER_NAMES, shape_of

_TOKENIZER_KEYS = (
    "tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.tokens", "tokenizer.ggml.token_type",
    "tokenizer.ggml.merges", "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.padding_token_id",
)  # fmt: skip
_TYPES = {
    "f16": gguf.GGMLQuantizationType.F16,
    "q8_0": gguf.GGMLQuantizationType.Q8_0,
    "q5_0": gguf.GGMLQuantizationType.Q5_0,
    "q4_0": gguf.GGMLQuantizationType.Q4_0,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--drafter", type=Path, required=True, nargs="+", help="of several the mean")
    parser.add_argument("--candidates", type=int, help="for the selector (default: as trained)")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--type", choices=sorted(_TYPES), default="q8_0")
    parser.add_argument("--name", default="SmolLM2 135M Instruct DFlash")
    arguments = parser.parse_args()
    reader = gguf.GGUFReader(arguments.target)
    states = [load_drafter(path, torch.device("cpu")) for path in arguments.drafter]
    plan = {**states[-1]["plan"], "candidates": arguments.candidates or states[-1]["plan"].get("candidates")}
    weights = _mean([state["drafter"] for state in states])
    writer = gguf.GGUFWriter(arguments.out, "dflash")
    _add_shape(writer, reader, plan, arguments.name)
    _copy_tokenizer(writer, reader)
    writer.add_mask_token_id(plan["mask"])
    tensors = {
        "fc.weight": weights["fc.weight"],
        "enc.output_norm.weight": weights["enc_output_norm"],
        "output_norm.weight": weights["output_norm"],
    }
    for number in range(plan["layers"]):
        for name in (*LAYER_NAMES, "attn_q_norm", "attn_k_norm"):
            key = f"layers.{number}.{name}"
            tensors[f"blk.{number}.{name}.weight"] = weights.get(key, weights.get(f"{key}.weight"))
    if plan.get("rank"):
        _add_selector(writer, plan, shape_of(reader).width)
        tensors["selector_predecessor.weight"] = weights["selector.before"]
        tensors["selector_successor.weight"] = weights["selector.behind"]
        tensors["selector_hidden.weight"] = weights["selector.gate.weight"]
    for name, tensor in tensors.items():
        _add(writer, name, tensor.float().numpy(), _TYPES[arguments.type])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{arguments.out}: {arguments.out.stat().st_size / 1e6:.1f} MB")


def _mean(drafters: Sequence[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Of drafters of one plan, of which each was trained on from another."""
    nothing = torch.zeros(())
    names = drafters[0]
    return {name: sum((one[name].float() for one in drafters), nothing) / len(drafters) for name in names}


def _add_shape(writer: gguf.GGUFWriter, reader: gguf.GGUFReader, plan: dict[str, Any], name: str) -> None:
    shape = shape_of(reader)
    writer.add_name(name)
    writer.add_license("apache-2.0")
    writer.add_block_count(plan["layers"])
    writer.add_context_length(int(reader.fields["llama.context_length"].contents()))
    writer.add_embedding_length(shape.width)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head)
    writer.add_value_length(shape.head)
    writer.add_layer_norm_rms_eps(shape.epsilon)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_uint32("dflash.block_size", plan["block"])
    writer.add_array("dflash.target_layers", list(plan["taps"]))


def _add_selector(writer: gguf.GGUFWriter, plan: dict[str, Any], width: int) -> None:
    """What makes it a DFlash 2 file beside the matrices: sizes, and convolutions that change nothing."""
    writer.add_uint32("dflash.selector_rank", plan["rank"])
    writer.add_uint32("dflash.selector_top_k", plan["candidates"])
    writer.add_uint32("dflash.conv_kernel_size", 1)
    writer.add_uint32("dflash.conv_group_size", width)
    for number in range(plan["layers"]):
        for name in ("attn_conv", "ffn_conv"):
            writer.add_tensor(f"blk.{number}.{name}_base", numpy.ones((2, 1, width), numpy.float32))
            writer.add_tensor(f"blk.{number}.{name}_proj.weight", numpy.zeros((2, width), numpy.float32))


def _copy_tokenizer(writer: gguf.GGUFWriter, reader: gguf.GGUFReader) -> None:
    for key in _TOKENIZER_KEYS:
        field = reader.fields.get(key)
        if field is None:
            continue
        value = field.contents()
        if isinstance(value, list):
            writer.add_array(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        else:
            writer.add_uint32(key, value)


def _add(
    writer: gguf.GGUFWriter, name: str, values: numpy.ndarray, wanted: gguf.GGMLQuantizationType
) -> None:
    if values.ndim == 1:
        writer.add_tensor(name, values.astype(numpy.float32))
    elif wanted == gguf.GGMLQuantizationType.F16:
        writer.add_tensor(name, values.astype(numpy.float16))
    else:
        writer.add_tensor(name, gguf.quantize(values, wanted), raw_dtype=wanted)


if __name__ == "__main__":
    main()

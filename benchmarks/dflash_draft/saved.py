"""Reads drafters that were written down: checkpoints of the training, and GGUF files as servers load them."""

from pathlib import Path
from typing import Any

import gguf
import torch
from torch import Tensor

_SELECTOR = {
    "selector_predecessor.weight": "selector.before",
    "selector_successor.weight": "selector.behind",
    "selector_hidden.weight": "selector.gate.weight",
}
_WHOLE = {
    "fc.weight": "fc.weight",
    "enc.output_norm.weight": "enc_output_norm",
    "output_norm.weight": "output_norm",
}
_ADDED_FOR_THE_SERVER = ("attn_conv", "ffn_conv")
"""Convolutions that change nothing, see `export.py`."""


def load_drafter(path: Path, device: torch.device) -> dict[str, Any]:
    """The `plan` and the weights (`drafter`) of a drafter.

    A GGUF file has its weights as they were rounded for the server. Training goes on from them, but without
    what the optimizer knew.
    """
    if path.suffix == ".gguf":
        return _from_gguf(path, device)
    return torch.load(path, map_location=device, weights_only=True)


def _from_gguf(path: Path, device: torch.device) -> dict[str, Any]:
    reader = gguf.GGUFReader(path)

    def value(name: str, default: Any = None) -> Any:
        field = reader.fields.get(name)
        return default if field is None else field.contents()

    plan = {
        "block": value("dflash.block_size"),
        "layers": value("dflash.block_count"),
        "taps": tuple(value("dflash.target_layers")),
        "mask": value("tokenizer.ggml.mask_token_id"),
        "rank": value("dflash.selector_rank", 0),
        "candidates": value("dflash.selector_top_k", 8),
    }
    weights: dict[str, Tensor] = {}
    for tensor in reader.tensors:
        name = _name_in_training(tensor.name)
        if name:
            numbers = gguf.dequantize(tensor.data, tensor.tensor_type).copy()
            weights[name] = torch.from_numpy(numbers).float().to(device)
    return {"plan": plan, "drafter": weights}


def _name_in_training(name: str) -> str:
    """Of a tensor of the file, empty for one that no training knows."""
    if known := _WHOLE.get(name) or _SELECTOR.get(name):
        return known
    _, number, rest = name.split(".", 2)
    part = rest.removesuffix(".weight")
    if part.startswith(_ADDED_FOR_THE_SERVER):
        return ""
    is_vector = part.endswith("_norm")
    return f"layers.{number}.{part}" if is_vector else f"layers.{number}.{part}.weight"

"""What the header of a DFlash drafter says, in each of the layouts there are.

llama.cpp writes `dflash.block_size` and `dflash.target_layers`. BeeLlama's own layout, architecture
`dflash-draft`, has `dflash-draft.dflash.block_size` and so on, and calls the layers `target_layer_ids`; in
the other architecture it reads `dflash.target_layer_ids` (`src/models/dflash_draft.cpp` of its 0.3.1).
"""

from agent.server.gguf_types import GgufHeader

USUAL_BLOCK_SIZE = 16
_LAYERS = ("target_layers", "target_layer_ids", "dflash.target_layer_ids")


def read_layers(header: GgufHeader) -> tuple[str, tuple[int, ...] | None]:
    """The key and the numbers of the target's layers that the drafter reads; None where it does not say."""
    keys = [f"{header.architecture}.{name}" for name in _LAYERS]
    key = next((key for key in keys if key in header.metadata), keys[0])
    return key, header.numbers(key)


def block_size(header: GgufHeader) -> int:
    """Tokens of a block, the known first one included."""
    return header.own_number("block_size", header.own_number("dflash.block_size", USUAL_BLOCK_SIZE))


def has_mask_token(header: GgufHeader) -> bool:
    own = header.own("dflash.mask_token_id")
    return own is not None or header.metadata.get("tokenizer.ggml.mask_token_id") is not None

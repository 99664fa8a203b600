"""Prints the figures of a run from what `agent run --output json` wrote: python3 show_result.py RESULT."""

import json
import sys
from pathlib import Path
from typing import Any


def lines(result: dict[str, Any]) -> list[str]:
    stats = result["stats"]
    prompt = stats["cached_tokens"] + stats["prompt_tokens"]
    figures = [f"{result['steps']} steps in {result['seconds']:.0f} s, {result['reason'].replace('_', ' ')}"]
    if stats["decode_tokens_per_second"] is not None:
        figures.append(f"decode        {stats['decode_tokens_per_second']:6.1f} tok/s")
    if stats["prefill_tokens_per_second"] is not None:
        figures.append(f"prefill       {stats['prefill_tokens_per_second']:6.1f} tok/s")
    if stats["acceptance_rate"] is None:
        figures.append("acceptance         -  nothing was drafted")
    else:
        drafts = f"{stats['accepted_tokens']} of {stats['drafted_tokens']} drafted tokens"
        figures.append(f"acceptance    {stats['acceptance_rate']:6.1%} {drafts}")
    if stats["cached_share"] is not None:
        figures.append(
            f"prompt cache  {stats['cached_share']:6.1%} {stats['cached_tokens']} of {prompt} prompt tokens"
        )
    return figures


if __name__ == "__main__":
    print("\n".join(lines(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))

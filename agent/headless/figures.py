"""Words for figures, shared by the headless outputs."""

from agent.core.stats import StepStats


def figures_line(stats: StepStats) -> str:
    """One line with what a turn cost. Acceptance only appears when something was drafted."""
    parts: list[str] = []
    if stats.decode_rate is not None:
        parts.append(f"decode {stats.decode_rate:.1f} tok/s")
    if stats.prefill_rate is not None:
        parts.append(f"prefill {stats.prefill_rate:.1f} tok/s")
    if stats.acceptance_rate is not None:
        share = f"{stats.accepted}/{stats.drafted}"
        parts.append(f"acceptance {stats.acceptance_rate:.0%} ({share} drafted tokens)")
    if stats.cached_share is not None:
        total = stats.cached_tokens + stats.prompt_tokens
        parts.append(f"prompt cache {stats.cached_share:.0%} ({stats.cached_tokens}/{total} tokens)")
    if stats.source == "measured" and parts:
        parts.append("measured here")
    return " · ".join(parts)

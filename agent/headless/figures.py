"""Words for figures, shared by the headless outputs."""

from agent.core.stats import StepStats


def figures_line(stats: StepStats) -> str:
    """One line with what a turn cost. Acceptance only appears when something was drafted."""
    parts: list[str] = []
    if stats.decode_rate is not None:
        parts.append(f"decode {stats.decode_rate:.1f} tok/s")
    if stats.prefill_rate is not None:
        parts.append(f"prefill {stats.prefill_rate:.1f} tok/s")
    if stats.source == "measured" and parts:
        parts.append("measured here")
    if stats.acceptance_rate is not None:
        parts.append(_acceptance(stats, stats.acceptance_rate))
    if stats.tokens_per_pass is not None:
        parts.append(f"{stats.tokens_per_pass:.1f} tokens a pass")
    if stats.cached_share is not None:
        total = stats.cached_tokens + stats.prompt_tokens
        parts.append(f"prompt cache {stats.cached_share:.0%} ({stats.cached_tokens}/{total} tokens)")
    return " · ".join(parts)


def token_count(stats: StepStats) -> str:
    """How much was generated; pieces where the server counted no tokens."""
    return (
        f"{stats.decoded_tokens} tokens" if stats.counted else f"{stats.decoded_tokens} pieces (not counted)"
    )


def _acceptance(stats: StepStats, rate: float) -> str:
    details = [f"{stats.accepted}/{stats.drafted} drafted tokens"] if stats.drafted else []
    if stats.draft_source == "engine metrics":
        details.append("engine metrics")
    return f"acceptance {rate:.0%} ({', '.join(details)})" if details else f"acceptance {rate:.0%}"

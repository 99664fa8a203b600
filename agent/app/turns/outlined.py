"""Whether a session has the tool `outline`, the map of the sources."""

from agent.server.profile import Profile

LEAST_CONTEXT = 16_384
"""Tokens of context from which on it is offered without being asked for: in less, files are few or cut."""


def offers_outline(profile: Profile) -> bool:
    """By the model card, else by size. A guided model is told which files there are."""
    wanted = profile.model_card.outline
    if wanted is not None:
        return wanted
    if profile.model_card.guided or (
        profile.engine == "remote" and "context" not in profile.model_fields_set
    ):
        return False
    return profile.context >= LEAST_CONTEXT

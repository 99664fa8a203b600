"""The profile of a session, completed by the card of the model that really answers."""

from typing import TYPE_CHECKING

from agent.core.errors import UsageError
from agent.resources import places_of_profiles
from agent.server.cards import AUTO, Card, card_for, identity_of
from agent.server.profile import Profile
from agent.server.profile_files import check_card, with_card
from agent.server.record import Endpoint

if TYPE_CHECKING:
    from agent.app.servers.serving import Serving

_OF_REQUESTS = ("card", "sampling", "model_card")
_TOLD_ELSEWHERE = ("reasoning", "preserve_reasoning", "template_arguments")
"""What the chat template of a server that was not started here is told with each request."""


def card_in_force(serving: "Serving", endpoint: Endpoint) -> Card | None:
    """The card of a profile that none was known for before its server answered; None for any other.

    The name of the profile's file has led nowhere, so the header of that file is asked, or the server.

    Raises:
        UsageError: one of the cards is wrong.
    """
    profile = serving.profile
    if profile.card != AUTO:
        return None
    names, architecture = endpoint.names, ""
    if endpoint.fingerprint is not None and profile.target is not None:
        names, architecture = identity_of(profile.target.path_in(serving.loaded.settings.models.folder))
    return card_for(names, architecture, places_of_profiles())


def completed_profile(serving: "Serving", endpoint: Endpoint) -> Profile:
    """The profile with what its card says about requests; how a server was started here stays as it is.

    The way of calling tools is settled apart, see `Serving.tool_protocol`.

    Raises:
        UsageError: one of the cards is wrong.
    """
    card = card_in_force(serving, endpoint)
    if card is None or not card.values:
        return serving.profile
    own = serving.profile.model_dump(exclude_unset=True)
    found = with_card(own, card, only_requests=True)
    try:
        wanted = Profile.model_validate(found)
    except ValueError as error:
        check_card(card)  # which value it is, in a line
        raise UsageError(
            f"the model card {card.path} does not fit the profile {serving.profile.name}",
            "see `agent profile validate`",
        ) from error
    keys = _OF_REQUESTS if endpoint.fingerprint is not None else (*_OF_REQUESTS, *_TOLD_ELSEWHERE)
    changed = {key: getattr(wanted, key) for key in keys}
    return serving.profile.model_copy(update=changed)

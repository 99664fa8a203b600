"""Whether the model card of the profile is that of its model."""

from collections.abc import Iterator, Sequence

from agent.app.doctor.finding import Finding, Patient, ok, warning
from agent.resources import places_of_profiles
from agent.server.cards import AUTO, DEFAULT, NONE, Card, card_for, find_card, identity_of
from agent.server.profile import Profile


def card(patient: Patient) -> Iterator[Finding]:
    """The card by the name and the header of the model's file. Reads the beginning of that file."""
    profile, loaded = patient.profile, patient.loaded
    if profile is None or loaded is None or profile.target is None:
        return
    names, architecture = identity_of(profile.target.path_in(loaded.settings.models.folder))
    known = (profile.target.file, *names)
    fitting = card_for(known, architecture, places_of_profiles(patient.environment))
    yield from judged_card(profile, fitting, architecture or profile.target.file, patient)


def served_card(patient: Patient, profile: Profile, names: Sequence[str]) -> list[Finding]:
    """The card by what a server that runs elsewhere calls its model; nothing where it has no name for it."""
    if not names:
        return []
    fitting = card_for(names, "", places_of_profiles(patient.environment))
    return list(judged_card(profile, fitting, names[-1], patient))


def judged_card(profile: Profile, fitting: Card | None, model: str, patient: Patient) -> Iterator[Finding]:
    """Compares the card in force with the one that fits the model best.

    Args:
        model: how it is called in the finding.
    """
    if profile.card == NONE:
        yield ok("card", "the profile takes no model card")
        return
    if profile.card == AUTO:
        title = fitting.title if fitting else "none"
        if fitting is None or fitting.name == DEFAULT:
            remedy = 'name one that fits with card = "..." in the profile (docs/models.md), or write your own'
            yield warning("card", f"nothing is known about the model {model}", remedy)
            return
        yield ok("card", f"{model}: {title}, card {fitting.name}")
        return
    own = find_card(profile.card, places_of_profiles(patient.environment))
    if fitting is None or fitting.name in (own.name, DEFAULT):
        yield ok("card", f"{own.title}, card {own.name}")
        return
    text = f"the profile has the card {own.name}, and its model {model} is known as {fitting.title}"
    yield warning("card", text, f'set card = "{fitting.name}" in the profile, or card = "auto"')

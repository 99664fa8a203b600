"""What was probably meant is told where something is like it, and else what to do instead."""

from agent.core.likeness import alike, did_you_mean, most_alike

NAMES = ("native", "constrained", "auto")


def test_the_most_alike_comes_first():
    assert alike("nativ", ("naive", "native", "auto"), most=2) == ["native", "naive"]
    assert most_alike("nativ", NAMES) == "native"


def test_nothing_is_guessed_that_is_not_alike():
    assert (alike("xyz", NAMES), most_alike("", NAMES), most_alike("nat", NAMES, cutoff=0.9)) == ([], "", "")


def test_hint_names_what_was_meant_or_what_there_is():
    assert did_you_mean("nativ", NAMES, "see --help") == "did you mean 'native'?"
    assert did_you_mean("autos", {"auto", "autoo"}, "", form="{}", most=2) == "did you mean auto or autoo?"
    assert did_you_mean("xyz", NAMES, "see --help") == "see --help"

"""`agent completion`, from the command line."""

from tests.e2e.conftest import Place


def test_without_a_name_the_shell_of_the_person_is_meant(place: Place):
    place.profile("of-mine", 'extends = "embedded-small"')
    place.variables["SHELL"] = "/usr/bin/fish"
    done = place.run("completion")
    assert (done.code, done.err) == (0, "")
    assert "complete -c agent" in done.out
    assert "of-mine" in done.out


def test_a_shell_that_is_not_known_is_told_in_one_line(place: Place):
    place.variables["SHELL"] = "/bin/tcsh"
    done = place.run("completion")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [
        "agent: there is no completion for tcsh",
        "hint: name one: agent completion bash, zsh or fish",
    ]

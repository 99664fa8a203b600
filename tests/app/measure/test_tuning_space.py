"""Which candidates there are: only what the engine can do."""

from pathlib import Path
from typing import Any

import pytest

from agent.app.measure.tuning_space import KINDS, Space, describe, dimension_names, merged
from agent.bench.trial import Changes
from agent.core.errors import UsageError
from agent.server.caps import built_in
from agent.server.profile import DialectName, Profile
from agent.server.profile_files import load_profile

SHIPPED = Path(__file__).parents[3] / "server_profiles"


def profile(**changes: Any) -> Profile:
    table: dict[str, Any] = {"name": "mine", "engine": "llama-server", "target": {"file": "t.gguf"}}
    return Profile.model_validate({**table, **changes})


def dflash(**numbers: Any) -> Profile:
    return profile(draft={"file": "d.gguf"}, speculation={"kind": "dflash", **numbers})


def walks(space: Space, name: str, best: Changes = ()) -> list[list[Changes]]:
    [dimension] = space.dimensions((name,))
    return [list(walk) for walk in dimension.walks(best)]


def values(space: Space, name: str, best: Changes = ()) -> list[list[Any]]:
    return [[dict(one)[key] for one in walk for key in (name,)] for walk in walks(space, name, best)]


def kinds(space: Space) -> set[tuple[str, ...]]:
    return {dict(one)[KINDS] for walk in walks(space, "kinds") for one in walk}


@pytest.mark.parametrize(
    ("dialect", "combines", "alone"),
    [
        ("llama.cpp", True, {("ngram-mod",), ("ngram-simple",), ("ngram-map-k",)}),
        ("bee-0.3", False, {("ngram-simple",), ("ngram-map-k",), ("suffix",), ("copyspec",)}),
        ("ik", False, {("ngram-mod",), ("suffix",)}),
    ],
)
def test_kinds_are_those_that_the_server_knows(dialect: DialectName, combines: bool, alone: set[Any]):
    space = Space(dflash(), built_in(dialect))
    found = kinds(space)
    assert () in found
    assert alone <= found
    assert (("dflash", "ngram-mod") in found) == combines
    assert all(reason for reason in space.left_out.values())


def test_embedded_engine_is_not_asked_for_kinds_that_it_does_not_know():
    found = kinds(Space(load_profile("embedded-small", [SHIPPED])))
    assert found == {("ngram-mod",), ("ngram-simple",), ("ngram-map-k",)}


def test_lengths_go_both_ways_from_where_the_profile_is():
    space = Space(dflash(n_max=6), built_in("llama.cpp"))
    up, down = ([dict(one)["speculation.n_max"] for one in walk] for walk in walks(space, "n_max"))
    assert (up, down) == ([8, 12, 15], [4, 3, 2, 1])


def test_a_dflash_draft_is_not_longer_than_its_block():
    up, down = walks(Space(dflash(), built_in("llama.cpp")), "n_max")
    assert up == []
    assert dict(down[0])["speculation.n_max"] == 12


def test_shortest_draft_of_ngram_mod_stays_below_the_longest():
    base = load_profile("embedded", [SHIPPED])
    space = Space(base)
    for walk in walks(space, "n_max"):
        for one in walk:
            speculation = space.profile(one).speculation
            assert (speculation.n_min or 0) <= (speculation.n_max or 0)


def test_where_nothing_is_drafted_there_are_no_lengths():
    assert walks(Space(profile(), built_in("llama.cpp")), "n_max") == []
    assert walks(Space(profile(), built_in("llama.cpp")), "p_min") == []


def test_lengths_are_those_of_the_kinds_that_were_best_so_far():
    space = Space(dflash(n_max=6), built_in("llama.cpp"))
    up, _ = walks(space, "n_max", ((KINDS, ("ngram-simple",)),))
    assert dict(up[0]) == {KINDS: ("ngram-simple",), "speculation.size_m": 64}


def test_numbers_of_a_kind_that_goes_are_dropped():
    changed = Space(dflash(n_max=6, p_min=0.5)).profile(((KINDS, ("ngram-mod",)),))
    assert (changed.speculation.n_max, changed.speculation.p_min) == (None, None)
    changed = Space(dflash(n_max=6)).profile(((KINDS, ("dflash", "ngram-mod")),))
    assert changed.speculation.n_max == 6


def test_threads_are_no_more_than_the_machine_has_and_automatic_is_left_automatic():
    space = Space(profile(threads=2), built_in("llama.cpp"), threads=6, most_threads=8)
    assert values(space, "threads") == [[4, 0, 8], [1]]


def test_a_bigger_batch_goes_with_a_ubatch_above_it():
    space = Space(profile(batch=512, ubatch=512), built_in("llama.cpp"))
    up, _ = walks(space, "batch")
    assert dict(up[0]) == {"ubatch": 1024, "batch": 1024}


def test_changes_are_named_for_people():
    changes = merged((), {KINDS: ("dflash", "ngram-mod"), "speculation.p_min": 0.5, "threads": 0})
    assert describe(changes) == "dflash + ngram-mod, p_min 0.5, threads automatic"
    assert describe(((KINDS, ()),)) == "no speculation"
    assert describe(()) == "base"


def test_names_of_what_is_varied_are_checked():
    assert dimension_names("threads, n_max,threads") == ("threads", "n_max")
    with pytest.raises(UsageError, match="'x'"):
        dimension_names("x")
    with pytest.raises(UsageError, match="names nothing"):
        dimension_names(",")

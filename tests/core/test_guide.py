import pytest

from agent.core.events import (
    CheckFinished,
    CompactionFinished,
    StepFinished,
    ToolFinished,
    ToolStarted,
)
from agent.core.guide import Offer, SmallModelGuide, Surroundings
from agent.core.stats import StepStats
from agent.core.tool import FileDiff

TOOLS = ("read", "search", "glob", "edit", "write", "shell", "finish")


def guide(
    *,
    files: dict[str, int] | None = None,
    shown: tuple[str, ...] = ("a.py",),
    mentioned: tuple[str, ...] = ("a.py",),
    new_files: tuple[str, ...] = (),
    locked: tuple[str, ...] = (),
    has_check: bool = True,
    check_passes: bool = False,
) -> SmallModelGuide:
    return SmallModelGuide(
        TOOLS,
        Surroundings(
            files=files or {"a.py": 10, "b.py": 10, "test_a.py": 10},
            shown=frozenset(shown),
            mentioned=mentioned,
            new_files=new_files,
            may_change=lambda path: path not in locked,
            has_check=has_check,
            check_passes=check_passes,
            retry_temperature=0.7,
        ),
    )


def wrote(one: SmallModelGuide, path: str, *, changed: bool = True) -> None:
    one.observe(ToolStarted(call_id="1", tool="write", arguments={"path": path}))
    diffs = (FileDiff(path, "old", "new"),) if changed else ()
    outcome = "ok" if changed else "error"
    one.observe(ToolFinished(call_id="1", tool="write", outcome=outcome, text="", seconds=0.0, diffs=diffs))


def read(one: SmallModelGuide, path: str) -> None:
    one.observe(ToolStarted(call_id="1", tool="read", arguments={"path": path}))
    one.observe(ToolFinished(call_id="1", tool="read", outcome="ok", text="", seconds=0.0))


def checked(one: SmallModelGuide, passed: bool, text: str = "") -> None:
    one.observe(CheckFinished(command="make test", passed=passed, text=text, seconds=0.0))


def test_offers_the_file_that_the_task_names_as_a_block_and_nothing_else() -> None:
    assert guide().offer() == Offer(tools=frozenset({"write"}), paths={"read": ()}, blocks=("a.py",))


def test_does_not_offer_to_finish_while_the_check_fails() -> None:
    one = guide()
    wrote(one, "a.py")
    checked(one, passed=False)
    assert "finish" not in (one.offer().tools or ())


def test_offers_only_to_finish_once_a_failing_check_passes() -> None:
    one = guide()
    wrote(one, "a.py")
    checked(one, passed=True)
    assert one.offer().tools == {"finish"}
    assert '{"tool": "finish"' in one.cue()


def test_never_offers_a_file_that_the_rules_lock() -> None:
    one = guide(shown=("a.py", "test_a.py"), mentioned=("a.py", "test_a.py"), locked=("test_a.py",))
    assert one.offer().blocks == ("a.py",)


def test_offers_the_files_of_a_task_in_turn() -> None:
    one = guide(shown=("a.py", "b.py"), mentioned=("a.py", "b.py"))
    wrote(one, "a.py")
    checked(one, passed=False)
    assert one.offer().blocks == ("b.py",)
    wrote(one, "b.py")
    checked(one, passed=False)
    assert one.offer().blocks == ("a.py",)


@pytest.mark.parametrize(
    "failure",
    [
        'File "/w/test_a.py", line 4, in test\n  File "/w/pkg/b.py", line 9, in f\nNameError: x',
        "FAILED\npkg/b.py:9: NameError",
    ],
)
def test_offers_the_file_where_the_check_failed(failure: str) -> None:
    files = {"a.py": 10, "pkg/b.py": 10, "c.py": 10}
    one = guide(files=files, shown=tuple(files), mentioned=tuple(files))
    for path in ("a.py", "c.py", "pkg/b.py"):
        wrote(one, path)
    checked(one, passed=False, text=failure)
    assert one.offer().blocks == ("pkg/b.py",)
    wrote(one, "pkg/b.py", changed=False)
    assert "pkg/b.py" not in one.offer().blocks


def test_offers_code_before_the_tests_of_it() -> None:
    one = guide(shown=("test_a.py", "a.py"), mentioned=("test_a.py", "a.py"))
    assert one.offer().blocks == ("a.py",)
    wrote(one, "a.py")
    checked(one, passed=False, text='File "/w/a.py", line 1')
    assert one.offer().blocks == ("test_a.py",)


def test_raises_the_temperature_after_a_reply_that_changed_nothing() -> None:
    one = guide()
    assert one.offer().temperature is None
    wrote(one, "a.py", changed=False)
    assert one.offer().temperature == 0.7
    wrote(one, "a.py")
    assert one.offer().temperature is None


def test_raises_the_temperature_after_a_reply_that_went_in_circles() -> None:
    one = guide()
    one.observe(StepFinished(step=1, stop_reason="repetition", stats=StepStats()))
    assert one.offer().temperature == 0.7
    wrote(one, "a.py")
    assert one.offer().temperature is None


def test_offers_a_new_file_that_the_task_names() -> None:
    one = guide(mentioned=(), new_files=("stack.py",), shown=())
    assert one.offer().blocks == ("stack.py",)
    assert one.cue() == "Write the complete file stack.py in a ``` block"


def test_offers_the_files_to_read_where_nothing_can_be_changed_yet() -> None:
    one = guide(mentioned=(), shown=())
    offer = one.offer()
    assert offer.tools == {"read", "finish"} - {"finish"}
    assert offer.paths["read"] == ("a.py", "b.py", "test_a.py")
    read(one, "b.py")
    assert one.offer().blocks == ("b.py",)


def test_lets_a_file_that_is_too_long_for_a_block_be_edited() -> None:
    one = guide(files={"a.py": 900})
    offer = one.offer()
    assert offer.blocks == ()
    assert offer.tools == set(TOOLS) - {"finish"}
    assert offer.paths["edit"] == ("a.py",)


def test_without_a_check_lets_the_model_finish_after_each_change() -> None:
    one = guide(shown=("a.py", "b.py"), mentioned=("a.py", "b.py"), has_check=False)
    assert one.offer().tools == {"write"}
    wrote(one, "a.py")
    assert one.offer() == Offer(tools=frozenset({"write", "finish"}), paths={"read": ()}, blocks=("b.py",))
    assert one.cue().endswith('or call finish if the task is done: {"tool": "finish", "answer": "..."}')


def test_a_check_that_passed_from_the_start_does_not_end_the_task() -> None:
    one = guide(shown=("a.py", "b.py"), mentioned=("a.py", "b.py"), check_passes=True)
    wrote(one, "a.py")
    checked(one, passed=True)
    assert one.offer().blocks == ("b.py",)
    assert "finish" in (one.offer().tools or ())


@pytest.mark.parametrize(("kept", "blocks"), [(True, ("a.py",)), (False, ())])
def test_what_was_summed_up_has_to_be_read_again(kept: bool, blocks: tuple[str, ...]) -> None:
    one = guide(mentioned=())
    read(one, "b.py")
    one.observe(CompactionFinished(before=9_000, after=2_000, summary="(Summed up.)", opening_kept=kept))
    assert one.offer().blocks == blocks

"""What waits for the running turn, and for turns after it."""

from agent.core.inbox import SessionInbox


def test_the_running_turn_takes_notes_and_steering_but_no_follow_up():
    inbox = SessionInbox()
    inbox.follow_up("later")
    inbox.steer("now")
    inbox.note("seen")
    assert inbox.take_notes() == ["seen"]
    assert inbox.take_steering() == ["now"]
    assert inbox.take_steering() == []
    assert inbox.follow_ups == ("later",)


def test_steering_that_came_too_late_is_the_next_prompt():
    inbox = SessionInbox()
    inbox.follow_up("third")
    inbox.steer("first")
    inbox.steer("second")
    assert [inbox.next_prompt(), inbox.next_prompt(), inbox.next_prompt()] == [
        "first\n\nsecond",
        "third",
        None,
    ]


def test_what_is_taken_back_is_only_the_persons_own():
    inbox = SessionInbox()
    inbox.note("seen")
    inbox.follow_up("b")
    inbox.put_back("a")
    inbox.steer("s")
    assert inbox.take_back() == ["s", "a", "b"]
    assert inbox.take_back() == []
    assert inbox.take_notes() == ["seen"]


def test_each_change_of_what_a_person_queued_is_told():
    told: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    inbox = SessionInbox(lambda: told.append((inbox.steering, inbox.follow_ups)))
    inbox.steer("a")
    inbox.follow_up("b")
    inbox.note("no news")
    inbox.take_steering()
    inbox.take_steering()
    inbox.next_prompt()
    assert told == [(("a",), ()), (("a",), ("b",)), ((), ("b",)), ((), ())]


def test_what_could_not_be_delivered_waits_again_in_its_old_order():
    inbox = SessionInbox()
    inbox.steer("a")
    inbox.steer("b")
    taken = inbox.take_steering()
    inbox.steer("c")
    inbox.steer_again(taken)
    assert inbox.steering == ("a", "b", "c")

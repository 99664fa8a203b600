"""Streams of events in every cut, against their data as a whole."""

import pytest

from agent.llm.events import EventReader, is_end

STREAM = (
    'data: {"a": "ä"}\n\n: still here\n\nevent: x\ndata: 1\r\ndata:2\r\n\r\nid: 7\rdata\r\rdata: [DONE]\n\n'
)
EVENTS = ['{"a": "ä"}', "1\n2", "", "[DONE]"]


def read(stream: bytes, size: int) -> list[str]:
    reader = EventReader()
    return [data for at in range(0, len(stream), size) for data in reader.feed(stream[at : at + size])]


@pytest.mark.parametrize("size", range(1, 20))
def test_events_are_the_same_wherever_the_stream_is_cut(size: int):
    assert read(STREAM.encode(), size) == EVENTS


def test_an_event_that_the_stream_ends_in_is_none():
    assert read(b"data: 1\n\ndata: 2\n", 4) == ["1"]


def test_an_event_without_data_is_none():
    assert read(b"event: ping\n\n: comment\n\n\n\ndata: 1\n\n", 100) == ["1"]


def test_what_is_no_utf_8_is_refused():
    with pytest.raises(UnicodeDecodeError):
        EventReader().feed(b"data: \xff\xfe\n\n")


def test_a_long_line_is_put_together_from_many_pieces():
    reader = EventReader()
    pieces = [b"data: ", *[b"y" * 100] * 1000, b""]
    assert [data for piece in pieces for data in reader.feed(piece)] == []
    assert reader.feed(b"\n\n") == ["y" * 100_000]


def test_the_end_is_told_from_data():
    assert is_end("[DONE]")
    assert not is_end('{"choices": []}')

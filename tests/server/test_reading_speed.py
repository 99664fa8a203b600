"""What is remembered of how fast prompts were read here."""

import json
from pathlib import Path

import pytest

from agent.server.profile import Profile
from agent.server.reading_speed import known_rate, reader_of, remember, telling_rate


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "reading-speeds.json"


def test_the_median_of_the_last_five_readings_counts(file: Path):
    assert known_rate(file, "one") is None
    remember(file, "one", [500.0, 80.0, 82.0])
    assert known_rate(file, "one") == 82.0
    remember(file, "one", [30.0, 31.0, 32.0])
    assert known_rate(file, "one") == 32.0
    assert known_rate(file, "other") is None


def test_of_many_readers_the_one_that_learned_longest_ago_is_forgotten(file: Path):
    for number in [*range(64), 0, 64]:
        remember(file, f"reader {number}", [10.0])
    kept = json.loads(file.read_text("utf-8"))
    assert len(kept) == 64
    assert "reader 1" not in kept
    assert kept["reader 0"] == [10.0, 10.0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"one": 5}',
        '{"one": {"rates": "fast"}}',
        '{"one": [true, "9", NaN, Infinity, -1, 0, 1e300, null, [1]]}',
        "\x00",
    ],
)
def test_a_damaged_file_remembers_nothing_and_is_written_anew(file: Path, text: str):
    file.parent.mkdir()
    file.write_text(text, "utf-8")
    assert known_rate(file, "one") is None
    remember(file, "one", [12.0])
    assert known_rate(file, "one") == 12.0


@pytest.mark.parametrize(
    ("evaluated", "cached", "seconds", "rate"),
    [
        (300, 0, 3.0, 100.0),
        (300, 4000, 3.0, 100.0),
        (199, 0, 1.0, None),
        (300, 9000, 3.0, None),
        (300, 0, 0.0, None),
    ],
)
def test_only_a_prompt_that_is_long_and_not_far_into_a_conversation_tells_a_speed(
    evaluated: int, cached: int, seconds: float, rate: float | None
):
    assert telling_rate(evaluated, cached, seconds) == rate


def test_another_model_engine_or_number_of_threads_is_another_reader():
    def reader(threads: int = 2, **changes: object) -> str:
        table = {"name": "p", "target": {"file": "t.gguf"}, **changes}
        return reader_of(Profile.model_validate(table), threads)

    others = {
        reader(3),
        reader(target={"file": "t.gguf", "sha256": "a" * 64}),
        reader(engine="llama-server"),
        reader(draft={"file": "d.gguf"}, speculation={"kind": "draft"}),
    }
    assert len(others) == 4
    assert reader() not in others
    assert reader(name="q", context=2048, batch=20) == reader()

"""The files of a report."""

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from agent.bench.page import page
from agent.bench.report import ReportFolder, as_json, as_table, write_text
from agent.bench.result import ServerReport
from agent.core.errors import AgentError
from tests.bench.rig import result_of, sample

NASTY = "</pre><script>alert('x')</script> $title & \ud800"


class Reader(HTMLParser):
    """Collects tags, and complains about one that is closed but not open."""

    VOID = frozenset({"meta", "line", "rect", "path", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader


def two_servers() -> str:
    return page(
        result_of(
            *(sample("a", run, decode_seconds=4 + run) for run in (1, 2)),
            *(sample("b", 1, text="done well", drafted=9, accepted=3), sample("b", 2, error="it broke")),
            settings={"runs": 2},
            machine={"processor": "a fast one"},
            is_greedy=True,
        )
    )


def test_page_is_well_formed():
    reader = read(two_servers())
    assert reader.open == []
    assert {"svg", "table", "details", "pre"} <= set(reader.seen)


def test_page_loads_nothing_and_runs_nothing():
    text = two_servers()
    reader = read(text)
    assert not {"script", "link", "img", "iframe"} & set(reader.seen)
    assert not {"src", "href"} & set(reader.attributes)
    assert "url(" not in text
    assert re.findall(r"https?://[^\s\"']+", text) == ["http://www.w3.org/2000/svg"]


def test_page_has_a_dark_and_a_light_form():
    assert "prefers-color-scheme: dark" in two_servers()


def test_what_a_model_or_a_server_wrote_is_only_text_on_the_page():
    text = page(
        result_of(
            sample(NASTY, text=NASTY),
            sample("b", error=NASTY),
            prompts=[("first", NASTY, NASTY)],
            notes=[NASTY],
        )
    )
    reader = read(text)
    assert "script" not in reader.seen
    assert reader.open == []


def test_page_shows_outputs_side_by_side_and_where_they_part():
    text = two_servers()
    assert "b: from character 4 on not that of a" in text
    assert "done<mark> </mark>well" in text


def test_page_of_nothing_says_so():
    text = page(result_of(servers=[ServerReport(name="a", failure="it broke")]))
    assert "Nothing was measured." in text
    assert "a failed: it broke" in text


def test_one_server_alone_is_told_by_its_speed():
    assert "writes 10.0 tokens per second" in page(result_of(sample("a")))


def test_json_says_which_samples_there_are_without_their_chunks():
    table = as_table(result_of(sample("a", raw={"chunks": ["big"]}), sample("b", error="it broke")))
    assert (table["completed_samples"], table["failed_samples"]) == (1, 1)
    assert "raw" not in table["results"][0]
    assert table["results"][1]["error"] == "it broke"
    assert json.loads(as_json(result_of(sample("a"))))["results"][0]["predicted_per_second"] == 10


def test_raw_replies_have_a_file_each_whatever_the_server_is_called(tmp_path: Path):
    folder = ReportFolder.create(tmp_path, "now")
    kept = folder.keep(sample("../host:80", raw={"chunks": [1]}))
    assert kept.measurement is not None
    assert not kept.measurement.raw
    path = folder.path / kept.raw_file
    assert path.parent == folder.path / "raw"
    assert json.loads(path.read_text("utf-8")) == {"chunks": [1]}


def test_two_reports_of_the_same_second_have_folders_of_their_own(tmp_path: Path):
    assert [ReportFolder.create(tmp_path, "now").path.name for _ in range(2)] == ["now", "now-2"]


def test_file_that_cannot_be_written_is_told_in_one_line(tmp_path: Path):
    with pytest.raises(AgentError, match="cannot write"):
        write_text(tmp_path / "missing" / "file", "text")


def test_pipe_is_written_to_and_not_replaced(tmp_path: Path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(path, "text")
        assert os.read(reader, 100) == b"text"
        assert path.is_fifo()
    finally:
        os.close(reader)


def test_link_stays_a_link(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_text(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text("utf-8") == "text"


def test_no_half_file_is_left(tmp_path: Path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(AgentError):
        write_text(tmp_path / "taken", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]

import pytest

from agent.app.setup.option import NeededFile, Option
from agent.app.setup.text import hanging_indent, in_two_lines


def test_two_lines_have_the_profile_its_server_the_download_and_the_memory() -> None:
    option = Option(
        profile="mine",
        title="",
        engine="embedded",
        program="embedded engine",
        fit="fits",
        need=2**30,
        room=2**32,
        files=(NeededFile(name="a.gguf", state="download", bytes=1_100_000_000),),
    )
    first, second = in_two_lines(option).splitlines()
    assert first == "mine with embedded engine"
    assert second == "  download 1.1 GB; fits: 1.07 GB of 4.29 GB free memory"


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("  memory      fits: 1.74 GB of 24.19 GB free memory", 14),
        ("              3 GGUF files of other programs", 14),
        ("  Qwen2.5-Coder 1.5B on the CPU", 2),
        ("  1. embedded-draft: Qwen2.5-Coder", 5),
        ("     no download; fits", 5),
        ("hint: build it", 2),
    ],
)
def test_the_rest_of_a_line_goes_on_below_its_text(line: str, column: int) -> None:
    assert hanging_indent(line) == column

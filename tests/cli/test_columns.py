from agent.cli.columns import in_columns


def test_every_column_is_as_wide_as_its_widest_text() -> None:
    assert in_columns([("FILE", "SIZE", "FOR"), ("a.gguf", "1 GB", ""), ("b", "-", "x")]) == [
        "FILE    SIZE  FOR",
        "a.gguf  1 GB",
        "b       -     x",
    ]


def test_no_rows_are_no_lines() -> None:
    assert in_columns([]) == []

from agent.cli.columns import cells, fitted, in_columns


def test_every_column_is_as_wide_as_its_widest_text() -> None:
    assert in_columns([("FILE", "SIZE", "FOR"), ("a.gguf", "1 GB", ""), ("b", "-", "x")]) == [
        "FILE    SIZE  FOR",
        "a.gguf  1 GB",
        "b       -     x",
    ]


def test_no_rows_are_no_lines() -> None:
    assert in_columns([]) == []


def test_a_character_that_takes_two_columns_of_a_terminal_counts_as_two() -> None:
    assert in_columns([("修复", "x"), ("abcde", "y"), ("e\u0301", "z")]) == [
        "修复   x",
        "abcde  y",
        "e\u0301      z",
    ]


def test_a_text_is_cut_where_its_columns_end() -> None:
    assert fitted("修复失败的测试", 8) == "修复失…"
    assert fitted("修复失败", 8) == "修复失败"
    assert cells(fitted("a修复", 3)) <= 3

"""What has to hold before the change is merged; run by the check of the task."""

from pathlib import Path

from text_stats import longest_word

assert longest_word("a bird in the hand") == "bird"
assert longest_word("one six") == "one"
assert longest_word("Tea, then COFFEE!") == "coffee"
assert longest_word("?!") is None
assert "longest_word" in Path("test_text_stats.py").read_text(encoding="utf-8")

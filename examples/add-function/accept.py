"""What has to hold before the change is merged; run by the check of the task."""

from pathlib import Path

import text_stats

assert text_stats.longest_word("a bird in the hand") == "bird", "the first of the longest words wins"
assert text_stats.longest_word("Tea, then COFFEE!") == "coffee", "lower case, without punctuation"
assert text_stats.longest_word("?!") is None, "a text without words has no longest word"
assert "longest_word" in Path("test_text_stats.py").read_text(encoding="utf-8"), (
    "there is no test for longest_word"
)

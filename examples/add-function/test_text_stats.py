import unittest

import text_stats


class TextStatsTest(unittest.TestCase):
    def test_words_are_lower_case_without_punctuation(self):
        self.assertEqual(text_stats.words("Stop! It's late."), ["stop", "it's", "late"])

    def test_most_frequent_word_comes_first(self):
        self.assertEqual(text_stats.most_common("b a b c", 2), ["b", "a"])

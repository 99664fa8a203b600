import unittest

from smooth import moving_average, peaks


class SmoothTest(unittest.TestCase):
    def test_average_of_every_pair(self):
        self.assertEqual(moving_average([1, 2, 3, 4], 2), [1.5, 2.5, 3.5])

    def test_window_as_long_as_the_series_gives_one_mean(self):
        self.assertEqual(moving_average([2, 4, 6], 3), [4])

    def test_window_longer_than_the_series_gives_nothing(self):
        self.assertEqual(moving_average([1, 2], 5), [])

    def test_peak_is_larger_than_both_neighbours(self):
        self.assertEqual(peaks([1, 3, 2, 5, 4]), [1, 3])

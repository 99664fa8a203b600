import unittest

from scoreboard import Scoreboard


class ScoreboardTest(unittest.TestCase):
    def setUp(self):
        self.board = Scoreboard()
        self.board.add("ben", 3)
        self.board.add("ada", 2)
        self.board.add("ada", 1)
        self.board.add("cleo", 5)

    def test_points_of_a_player_add_up(self):
        self.assertEqual(self.board.total("ada"), 3)

    def test_unknown_player_has_no_points(self):
        self.assertEqual(self.board.total("dora"), 0)

    def test_ranking_puts_most_points_first_and_ties_in_order_of_names(self):
        self.assertEqual(self.board.ranking(), [("cleo", 5), ("ada", 3), ("ben", 3)])

    def test_leader_is_the_first_of_the_ranking(self):
        self.assertEqual(self.board.leader(), "cleo")

    def test_empty_board_has_no_leader(self):
        self.assertIsNone(Scoreboard().leader())

    def test_negative_points_are_refused(self):
        with self.assertRaises(ValueError):
            self.board.add("ben", -1)

import unittest

from booking import Span, clock, free, taken


def span(start: str, end: str) -> Span:
    return Span(clock(start), clock(end))


class TakenTest(unittest.TestCase):
    def test_bookings_that_touch_become_one(self):
        self.assertEqual(taken([span("09:00", "10:00"), span("10:00", "11:00")]), [span("09:00", "11:00")])

    def test_bookings_apart_stay_apart(self):
        apart = [span("09:00", "10:00"), span("13:00", "14:00")]
        self.assertEqual(taken(apart), apart)

    def test_short_booking_inside_a_long_one_does_not_shorten_it(self):
        self.assertEqual(taken([span("09:00", "12:00"), span("10:00", "10:30")]), [span("09:00", "12:00")])


class FreeTest(unittest.TestCase):
    def test_gap_between_two_bookings_is_free(self):
        day = span("08:00", "12:00")
        self.assertEqual(
            free([span("08:00", "09:00"), span("10:00", "12:00")], day), [span("09:00", "10:00")]
        )

import unittest

import rates
from convert import convert
from report import report


class MoneyTest(unittest.TestCase):
    def test_currency_may_be_in_lower_case(self):
        self.assertEqual(rates.get_rate("usd"), 0.92)

    def test_unknown_currency_is_an_error(self):
        with self.assertRaises(ValueError):
            rates.get_rate("XXX")

    def test_converts_between_two_foreign_currencies(self):
        self.assertEqual(convert(100, "GBP", "USD"), 127.17)

    def test_report_is_sorted(self):
        self.assertEqual(report(["USD", "CHF"]), "CHF   1.0500\nUSD   0.9200")

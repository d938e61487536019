import json
import pathlib
import unittest


class TestOutputs(unittest.TestCase):
    def test_report(self):
        report = json.loads(pathlib.Path("/app/report.json").read_text())
        self.assertEqual(report, {"200": 3, "404": 1, "500": 1})


if __name__ == "__main__":
    unittest.main()

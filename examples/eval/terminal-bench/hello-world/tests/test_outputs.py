import pathlib
import unittest


class TestOutputs(unittest.TestCase):
    def test_greeting(self):
        greeting = pathlib.Path("/app/greeting.txt")
        self.assertTrue(greeting.exists(), f"{greeting} is missing")
        self.assertEqual(greeting.read_text().strip(), "Hello, world!")


if __name__ == "__main__":
    unittest.main()

"""Starts a run and takes its typed answer, by the packaged library."""

import sys

from gyrus_client import Gyrus, GyrusError
from gyrus_client._api import RunDetail  # The types of the API are part of the package.

address, workdir = sys.argv[1:]
gyrus = Gyrus(address)
schema = {"type": "string"}
run = gyrus.start("Say that it is done.", workdir, answer_schema=schema, loop="single-shot")
result = run.wait()
assert not result.reached, result  # Words are no JSON, and it was sent back in vain.
plain = gyrus.start("Say that it is done.", workdir, loop="single-shot")
numbers = [entry["seq"] for entry in plain.follow()]
assert numbers == list(range(1, len(numbers) + 1)), numbers
assert plain.result().answer == "It is done.", plain.result()
assert plain.files() == [] and plain.questions() == []
try:
    plain.read_file("../work")
    raise AssertionError("it left no such file")
except GyrusError as error:
    assert error.status == 404, error
assert RunDetail.__annotations__["state"]
print(f"{len(numbers)} entries")

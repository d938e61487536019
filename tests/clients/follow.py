"""Starts a run and follows it to its end, by a client that a generator made from `/openapi.json`."""

import json
import os
import sys

from client import AuthenticatedClient
from client.api.runs import follow_run, show_run, start_run
from client.models import RunOptions, StartRun

address, workdir = sys.argv[1:]
client = AuthenticatedClient(base_url=address, token=os.environ["GYRUS_TOKEN"], timeout=60)
options = RunOptions.from_dict({"loop": "single-shot"})
body = StartRun(goal="Say that it is done.", workdir=workdir, options=options)
command = start_run.sync(client=client, body=body)
stream = follow_run.sync(command.run, client=client)
data = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: ")]
entries = [json.loads(entry) for entry in data]
assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1)), entries
assert entries[-1]["kind"] == "run.ended", entries[-1]
run = show_run.sync(command.run, client=client)
assert run.state == "over" and run.answer == "It is done.", run
print(f"{len(entries)} entries")

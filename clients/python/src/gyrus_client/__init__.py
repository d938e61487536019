"""A client of gyrus: starts runs, follows them, answers what they ask, and takes their results."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    # Made from /openapi.json when the package is built.
    from ._api import CommandView, RunDetail, RunOverview

__all__ = ["Gyrus", "GyrusError", "Question", "Result", "Run"]

# Seconds between two looks at what has no stream, and after a connection that broke.
PAUSE = 0.2
# Seconds without a byte after which a stream is opened anew; the server sends signs of life.
SILENCE = 60


class GyrusError(Exception):
    """The server refuses something, or cannot be reached."""

    def __init__(self, message: str, status: int | None = None, hint: str | None = None) -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.status = status
        self.hint = hint


@dataclass(frozen=True)
class Result:
    """The state of a run that is at rest, or was looked at."""

    #: ``over``, ``parked``, ``running`` and so on.
    state: str
    #: The strength of a goal that is reached: ``answered``, ``claimed``, ``checked`` or ``verified``.
    outcome: str | None
    #: The way in which it ended, or the reason why it waits.
    ending: str | None
    #: The answer; read as JSON if the run has an answer schema.
    answer: Any
    #: All that the server says of the run.
    details: RunDetail

    @property
    def reached(self) -> bool:
        """Whether the goal counts as reached."""
        return self.outcome is not None


class Gyrus:
    """A server: ``gyrus serve``."""

    def __init__(self, address: str = "http://127.0.0.1:7717", token: str | None = None) -> None:
        self.address = address.rstrip("/")
        self._token = token or os.environ.get("GYRUS_TOKEN", "")

    def start(
        self,
        goal: str,
        workdir: str | os.PathLike[str],
        *,
        answer_schema: dict[str, Any] | None = None,
        context: dict[str, str] | None = None,
        key: str | None = None,
        **options: str | int | float | bool | list[str],
    ) -> Run:
        """Starts a run. The folder is one of the server's machine; commands with one key are one."""
        given: dict[str, Any] = {name.replace("_", "-"): value for name, value in options.items()}
        if answer_schema is not None:
            given["answer-schema"] = json.dumps(answer_schema)
        body = {"goal": goal, "workdir": os.fspath(workdir), "options": given}
        body |= {"context": context or {}} | ({"key": key} if key else {})
        command: CommandView = self.call("POST", "/api/runs", body)
        return Run(self, command["run"], command["id"], answer_schema is not None)

    def run(self, run: str) -> Run:
        """Returns a run by its id."""
        details: RunDetail = self.call("GET", f"/api/runs/{quote(run, safe='')}")
        return Run(self, details["run"], details.get("command"), False)

    def runs(self, **query: str | int) -> list[RunOverview]:
        """Lists runs, newest first; by ``state``, ``outcome``, ``text``, ``limit`` and so on."""
        return self.call("GET", f"/api/runs?{urlencode(query)}")["runs"]

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Calls an endpoint of the API; returns its JSON, its text, or its bytes."""
        data = None if body is None else json.dumps(body).encode()
        with self.open(method, path, data, {}) as answer:
            content, kind = answer.read(), answer.headers.get_content_type()
        if not content:
            return None
        if kind == "application/json":
            return json.loads(content)
        return content.decode() if kind.startswith("text/") else content

    def open(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> Any:
        """Opens a response, for streams."""
        headers = headers | {"Authorization": f"Bearer {self._token}"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = Request(self.address + path, data=data, headers=headers, method=method)
        try:
            return urlopen(request, timeout=SILENCE)
        except HTTPError as error:
            try:
                said = json.load(error)
            except ValueError:
                said = {"error": error.reason}
            raise GyrusError(said.get("error"), error.code, said.get("hint")) from None
        except (URLError, OSError) as error:
            raise GyrusError(f"{self.address} cannot be reached: {error}") from error


@dataclass(frozen=True)
class Question:
    """A question of a run. An answer counts for exactly this card; of several, the first counts."""

    gyrus: Gyrus
    run: str
    id: str
    #: What is asked: ``sentence``, ``reasons``, ``details`` and so on.
    card: dict[str, Any]

    def approve(self, words: str | None = None, reach: str = "once") -> None:
        """Says yes: ``once``, for the ``session`` or ``always``; with words if it asks for words."""
        self._answer({"approve": True, "reach": reach, "words": words})

    def deny(self, reason: str | None = None) -> None:
        """Says no."""
        self._answer({"approve": False, "words": reason})

    def _answer(self, body: dict[str, Any]) -> None:
        self.gyrus.call("POST", f"/api/runs/{self.run}/questions/{self.id}/answer", body)


class Run:
    """A run."""

    def __init__(self, gyrus: Gyrus, run: str, command: str | None, is_json: bool) -> None:
        self.gyrus, self.id, self._command, self._is_json = gyrus, run, command, is_json

    def follow(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """Yields the entries of its journal as they reach the disk, until it is at rest. A
        connection that breaks is opened again, and nothing is missed or told twice."""
        while True:
            try:
                for entry in self._entries(after):
                    after = entry["seq"]
                    yield entry
                    if entry["kind"] == "run.ended":
                        return
                    if entry["kind"] == "run.parked" and self._is_at_rest():
                        return
            except (OSError, GyrusError) as error:
                if isinstance(error, GyrusError) and error.status is not None:
                    raise
            if self._is_at_rest():
                return
            time.sleep(PAUSE)

    def _entries(self, after: int) -> Iterator[dict[str, Any]]:
        path = f"/api/runs/{self.id}/events?after={after}"
        with self.gyrus.open("GET", path, None, {"Accept": "text/event-stream"}) as stream:
            for line in stream:
                if line.startswith(b"data:"):
                    yield json.loads(line[5:])

    def _is_at_rest(self) -> bool:
        """Whether its command is over. One that waits for a person goes on by itself."""
        if self._command is None:
            return True
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            state = self.gyrus.call("GET", f"/api/commands/{self._command}")["stage"]["state"]
            if state != "running":
                return state in ("ended", "cancelled")
            # Its process lives a moment longer than the entry that parks it.
            time.sleep(PAUSE)
        return False

    def wait(self, on_question: Callable[[Question], None] | None = None) -> Result:
        """Waits until it is at rest. Questions go to `on_question`; without it, to a person
        elsewhere."""
        for entry in self.follow():
            if on_question and entry["kind"] == "approval.asked":
                for question in self.questions():
                    on_question(question)
        return self.result()

    def result(self) -> Result:
        """Returns its state, and its answer if it has one."""
        details: RunDetail = self.gyrus.call("GET", f"/api/runs/{self.id}")
        answer = details.get("answer")
        if answer is not None and self._is_json:
            answer = json.loads(answer)
        return Result(
            details["state"], details.get("outcome"), details.get("ending"), answer, details
        )

    def questions(self) -> list[Question]:
        """Returns what it asks and nobody has answered, its children's questions too."""
        asked = self.gyrus.call("GET", f"/api/runs/{self.id}/questions")
        return [
            Question(self.gyrus, one["run"], one["question"], one["card"])
            for one in asked
            if not one.get("answered")
        ]

    def files(self) -> list[str]:
        """Returns the paths of the files that it left in its folder, the newest last."""
        return self.gyrus.call("GET", f"/api/runs/{self.id}/files")["files"]

    def read_file(self, path: str) -> bytes:
        """Returns a file that it left, as it is now."""
        return self.gyrus.call("GET", f"/api/runs/{self.id}/file?{urlencode({'path': path})}")

    def diff(self) -> str:
        """Returns what it changed in its folder, as a patch."""
        return self.gyrus.call("GET", f"/api/runs/{self.id}/diff") or ""

    def steer(self, text: str) -> None:
        """Adds to its goal, for good."""
        self._send("steer", {"text": text})

    def pause(self) -> None:
        """Parks it after what is in progress."""
        self._send("pause")

    def stop(self) -> None:
        """Cuts off what is in progress, and parks it."""
        self._send("stop")

    def _send(self, message: str, body: object = None) -> None:
        """Sends it a message, once it has begun."""
        next(self.follow(), None)
        self.gyrus.call("POST", f"/api/runs/{self.id}/{message}", body)

    def resume(self) -> None:
        """Goes on with it."""
        self._command = self.gyrus.call("POST", f"/api/runs/{self.id}/resume")["id"]

"""The provider that every peer asks: it answers at once, so that only the agent costs anything.

It serves two streaming protocols on one loopback port, Chat Completions (`POST …/chat/completions`)
and Responses (`POST …/responses`), by the shapes of the providers' API references of 2026. The
first part of a request's path names a conversation; its first requests are answered with a call of
the agent's shell tool, the next one with the end. Each call prints a number, and the next request
must bring it twice, with the call and as what came of it: a step that was not really taken is an
error.
"""

import asyncio
import json
import threading
import time

# Names of shell tools, best first, each with the arguments that it wants for a command line.
SHELLS = {
    "shell": lambda command: {"command": command},
    "shell_command": lambda command: {"command": command},
    "exec_command": lambda command: {"cmd": command},
}
FINISH = "finish"
USAGE = {"input": 900, "output": 60}


def command(step):
    """The command line of a step. It starts no program beside the shell, and is one that gyrus
    lets through without a sandbox."""
    return f"echo {result(step)}"


def result(step):
    """What it prints."""
    return f"result-{700000 + step}"


class Conversation:
    """One agent at work: how many steps it is to take, and when it asked (monotonic seconds)."""

    def __init__(self, steps, command=command):
        self.steps = steps
        self.command = command
        self.asked_at = []
        self.errors = []

    def answer(self, body):
        """The name and arguments of the tool to call next, or `None` at the end."""
        self.asked_at.append(time.monotonic())
        step = len(self.asked_at) - 1
        if self.command is command and 0 < step and body.count(result(step - 1)) < 2:
            self.errors.append(f"request {step} does not bring {result(step - 1)!r}")
        tools = names(json.loads(body).get("tools", []))
        if step < self.steps:
            for tool, arguments in SHELLS.items():
                if tool in tools:
                    return tool, arguments(self.command(step))
            self.errors.append(f"there is no shell tool among {sorted(tools)}")
        return (FINISH, {"reached": True, "answer": "done"}) if FINISH in tools else None


def names(tools):
    return {tool.get("name") or tool.get("function", {}).get("name") for tool in tools}


class Provider:
    """A server on a free port of 127.0.0.1, on a thread of its own."""

    def __init__(self):
        self.conversations = {}
        self.last_body = b""
        self._loop = asyncio.new_event_loop()
        started = threading.Event()

        def serve():
            asyncio.set_event_loop(self._loop)
            server = self._loop.run_until_complete(
                asyncio.start_server(self._connection, "127.0.0.1", 0, limit=1 << 20)
            )
            self.port = server.sockets[0].getsockname()[1]
            started.set()
            self._loop.run_forever()

        threading.Thread(target=serve, daemon=True).start()
        started.wait()

    def begin(self, name, conversation):
        """Starts a conversation; returns the base URL for its agent."""
        self.conversations[name] = conversation
        return f"http://127.0.0.1:{self.port}/{name}/v1"

    async def _connection(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                method, path = head.split(b" ", 2)[:2]
                length = 0
                for line in head.split(b"\r\n"):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":", 1)[1])
                body = await reader.readexactly(length)
                status, kind, text = self._answer(method, path.decode(), body)
                text = text.encode()
                writer.write(
                    b"HTTP/1.1 %s\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n%s"
                    % (status, kind, len(text), text)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, method, path, body):
        conversation = self.conversations.get(path.split("/")[1])
        shape = {"completions": chat, "responses": responses}.get(path.rsplit("/", 1)[-1])
        if method != b"POST" or conversation is None or shape is None:
            return b"404 Not Found", b"application/json", '{"error": {"message": "unknown"}}'
        self.last_body = body
        call = conversation.answer(body.decode())
        return b"200 OK", b"text/event-stream", shape(call, len(conversation.asked_at))


def chat(call, number):
    def chunk(delta, reason=None, **more):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        base = {"id": f"chat-{number}", "object": "chat.completion.chunk", "created": 0}
        return f"data: {json.dumps({**base, 'model': 'm', 'choices': [choice], **more})}\n\n"

    usage = {
        "prompt_tokens": USAGE["input"],
        "completion_tokens": USAGE["output"],
        "total_tokens": sum(USAGE.values()),
    }
    if call is None:
        said, reason = chunk({"role": "assistant", "content": "done"}), "stop"
    else:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        calls = [{"index": 0, "id": f"call-{number}", "type": "function", "function": function}]
        said, reason = chunk({"role": "assistant", "tool_calls": calls}), "tool_calls"
    return said + chunk({}, reason, usage=usage) + "data: [DONE]\n\n"


def responses(call, number):
    def event(kind, **fields):
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

    if call is None:
        text = {"type": "output_text", "text": "done", "annotations": []}
        item = {"type": "message", "role": "assistant", "id": f"item-{number}", "content": [text]}
    else:
        item = {
            "type": "function_call",
            "id": f"item-{number}",
            "call_id": f"call-{number}",
            "name": call[0],
            "arguments": json.dumps(call[1]),
        }
    usage = {
        "input_tokens": USAGE["input"],
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": USAGE["output"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sum(USAGE.values()),
    }
    about = {"id": f"response-{number}", "object": "response", "model": "m"}
    return (
        event("response.created", response={**about, "status": "in_progress"})
        + event("response.output_item.added", output_index=0, item=item)
        + event("response.output_item.done", output_index=0, item=item)
        + event("response.completed", response={**about, "status": "completed", "usage": usage})
    )

"""Drives `gyrus acp` with the official SDK of the Agent Client Protocol, as an editor does: a whole
changeset with its approvals, a cancel in the middle of a command, and a session that is loaded by
another process. The SDK checks every message against the protocol's schema."""

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import sys
import time

import acp
from acp import schema

GYRUS, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
WORK = FOLDER / "work"

PROPOSED = {
    "summary": "It greets the world.",
    "changes": [
        {
            "path": "greet.txt",
            "reason": "it names it",
            "edits": [{"old": "hello", "new": "hello, world"}],
        },
        {"path": "NEWS.md", "reason": "people ask", "content": "It greets.\n"},
    ],
}
CHANGESET = f"""
[[reply]]
purpose = "plan"
text = "I propose it."
calls = [{{ tool = "propose_changeset", arguments = '''{json.dumps(PROPOSED)}''' }}]
[[reply]]
purpose = "reflect"
text = '{{"worked": "It was short.", "did_not": "Nothing."}}'
"""
LASTS = """
[[reply]]
text = "This takes a while."
calls = [{ tool = "shell", arguments = { command = "sleep 600" } }]
"""


VISIBLE = {"session_info_update", "agent_thought_chunk", "agent_message_chunk", "tool_call"}


class Editor(acp.Client):
    def __init__(self):
        self.updates, self.asked, self.first = [], [], None
        self.working = asyncio.Event()

    async def session_update(self, session_id, update, **_):
        if update.session_update in VISIBLE:
            self.first = self.first or time.monotonic()
        self.updates.append(update)
        if getattr(update, "status", None) == "in_progress":
            self.working.set()

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append((tool_call, options))
        option = next(option for option in options if option.kind == "allow_once")
        outcome = schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    def words(self):
        texts = (u.content.text for u in self.updates if u.session_update == "agent_message_chunk")
        return "".join(texts)

    def kinds(self):
        return {update.session_update for update in self.updates}


@contextlib.asynccontextmanager
async def agent(editor, script, *flags):
    (FOLDER / "script.toml").write_text(script)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(FOLDER / "person"),
        "GYRUS_HOME": str(FOLDER / "home"),
        "GYRUS_MODEL": f"script:{FOLDER / 'script.toml'}",
    }
    spawned = acp.spawn_agent_process(editor, GYRUS, "acp", *flags, env=env, cwd=WORK)
    async with spawned as (connection, process):
        answer = await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert answer.protocol_version == 1 and answer.agent_capabilities.load_session, answer
        yield connection, process


async def changeset():
    editor = Editor()
    async with agent(editor, CHANGESET) as (connection, _):
        new = await connection.new_session(cwd=str(WORK), mcp_servers=[])
        for config_id, value in [("loop", "changeset"), ("approve", "auto")]:
            await connection.set_config_option(
                session_id=new.session_id, config_id=config_id, value=value
            )
        editor.first, since = None, time.monotonic()
        goal = [acp.text_block("greet the world in greet.txt")]
        answer = await connection.prompt(session_id=new.session_id, prompt=goal)
        reaction = 1000 * (editor.first - since)
    assert answer.stop_reason == "end_turn", answer
    assert (WORK / "greet.txt").read_text() == "hello, world\n"
    assert (WORK / "NEWS.md").read_text() == "It greets.\n"
    diffs = [one for call, _ in editor.asked for one in call.content if one.type == "diff"]
    assert any(diff.new_text == "hello, world\n" for diff in diffs), editor.asked
    print(f"changeset: {len(editor.asked)} approvals, {len(diffs)} diffs, "
          f"{len(editor.updates)} updates of {len(editor.kinds())} kinds, "
          f"first after {reaction:.0f} ms")
    return new.session_id, editor.words()


async def cancelled():
    editor = Editor()
    async with agent(editor, LASTS, "--approve", "auto") as (connection, _):
        new = await connection.new_session(cwd=str(WORK), mcp_servers=[])
        goal = [acp.text_block("wait for it")]
        turn = asyncio.create_task(connection.prompt(session_id=new.session_id, prompt=goal))
        await asyncio.wait_for(editor.working.wait(), 30)
        since = time.monotonic()
        await connection.cancel(session_id=new.session_id)
        answer = await asyncio.wait_for(turn, 30)
    assert answer.stop_reason == "cancelled", answer
    print(f"cancel: ended after {1000 * (time.monotonic() - since):.0f} ms")


async def loaded(session, words):
    editor = Editor()
    async with agent(editor, LASTS) as (connection, process):
        sessions = (await connection.list_sessions(cwd=str(WORK))).sessions
        assert session in [one.session_id for one in sessions], sessions
        await connection.load_session(session_id=session, cwd=str(WORK), mcp_servers=[])
        # The updates come before the answer, but the SDK may still be passing them on.
        while not editor.words().strip().endswith(words.strip()[-20:]):
            await asyncio.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        await process.wait()
    goals = [u.content.text for u in editor.updates if u.session_update == "user_message_chunk"]
    assert goals == ["greet the world in greet.txt"], goals
    print(f"load: {len(sessions)} sessions, {len(editor.updates)} updates read again")


async def main():
    for folder in ["home", "person", "work"]:
        (FOLDER / folder).mkdir(parents=True, exist_ok=True)
    (WORK / "greet.txt").write_text("hello\n")
    session, words = await changeset()
    await cancelled()
    await loaded(session, words)


asyncio.run(asyncio.wait_for(main(), 120))

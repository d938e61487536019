"""The LangGraph peer: a model node and a tool node in a loop, every step checkpointed in SQLite.

    langgraph_agent.py BASE_URL WORKDIR DATABASE GOAL

As its documentation builds such an agent, with what gyrus always does: a streamed reply, and a
checkpoint on disk before the next step (`durability="sync"`).
"""

import json
import subprocess
import sys

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from openai import OpenAI

SHELL = {
    "type": "function",
    "function": {
        "name": "shell",
        "description": "Runs a command line and returns what it printed.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    },
}


def wire(message):
    """A message as Chat Completions has it."""
    if isinstance(message, HumanMessage):
        return {"role": "user", "content": message.content}
    if isinstance(message, ToolMessage):
        return {
            "role": "tool",
            "tool_call_id": message.tool_call_id,
            "content": message.content,
        }
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
        }
        for call in message.tool_calls
    ]
    said = {"role": "assistant", "content": message.content}
    return {**said, "tool_calls": calls} if calls else said


def agent(base_url, workdir):
    client = OpenAI(base_url=base_url, api_key="none", max_retries=0)

    def model(state):
        text, calls = "", {}
        stream = client.chat.completions.create(
            model="m",
            messages=[wire(message) for message in state["messages"]],
            tools=[SHELL],
            stream=True,
        )
        for chunk in stream:
            delta = chunk.choices[0].delta
            text += delta.content or ""
            for piece in delta.tool_calls or []:
                call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                call["id"] = piece.id or call["id"]
                call["name"] = piece.function.name or call["name"]
                call["arguments"] += piece.function.arguments or ""
        calls = [
            {"id": call["id"], "name": call["name"], "args": json.loads(call["arguments"])}
            for call in calls.values()
        ]
        return {"messages": [AIMessage(content=text, tool_calls=calls)]}

    def tools(state):
        results = []
        for call in state["messages"][-1].tool_calls:
            done = subprocess.run(
                ["bash", "-c", call["args"]["command"]],
                cwd=workdir,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=120,
            )
            content = f"{done.stdout}[exit code {done.returncode}]"
            results.append(ToolMessage(content=content, tool_call_id=call["id"]))
        return {"messages": results}

    def after_model(state):
        return "tools" if state["messages"][-1].tool_calls else END

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", after_model, ["tools", END])
    graph.add_edge("tools", "model")
    return graph


def main():
    base_url, workdir, database, goal = sys.argv[1:]
    with SqliteSaver.from_conn_string(database) as saver:
        compiled = agent(base_url, workdir).compile(checkpointer=saver)
        end = compiled.invoke(
            {"messages": [HumanMessage(content=goal)]},
            {"configurable": {"thread_id": "bench"}, "recursion_limit": 10_000},
            durability="sync",
        )
    print(end["messages"][-1].content)


if __name__ == "__main__":
    main()

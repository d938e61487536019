"""The tools of a bookshop, over a file of JSON: a server of the Model Context Protocol."""

import json
import sys

FILE = sys.argv[1]
ID = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
REASON = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "reason": {"type": "string"}},
    "required": ["id", "reason"],
}
TOOLS = [
    {"name": "find_order", "description": "Returns an order.", "inputSchema": ID},
    {"name": "cancel_order", "description": "Cancels an order.", "inputSchema": REASON},
]


def call(name, arguments):
    with open(FILE) as file:
        data = json.load(file)
    order = data["orders"].get(arguments["id"])
    if order is None:
        raise ValueError("there is no such order")
    if name == "find_order":
        return order
    if order["state"] != "open":
        raise ValueError(f"the order is {order['state']}")
    order["state"] = "cancelled"
    with open(FILE, "w") as file:
        json.dump(data, file)
    return {"paid back": order["price"]}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bookshop", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        try:
            text, wrong = json.dumps(call(params["name"], params["arguments"])), False
        except (KeyError, ValueError) as error:
            text, wrong = str(error), True
        return {"content": [{"type": "text", "text": text}], "isError": wrong}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)

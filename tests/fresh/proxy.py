"""A run behind a proxy: nothing else leads out, and it shows certificates of its own authority.

The model's host has no address here: only the proxy knows the name, ends the connection with a
certificate that its authority signed, and answers as a model does.
"""

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

HOST = "llm.fresh.example"
gyrus, scratch = sys.argv[1], Path(sys.argv[2])


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, cwd=scratch, capture_output=True)


def certificates():
    """An authority, and a certificate of the host that it signed."""
    name = ["-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2"]
    openssl("req", "-x509", *name, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Fresh CA")
    request = ["-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    openssl("req", *request, "-keyout", "host.key", "-out", "host.csr", "-subj", f"/CN={HOST}")
    (scratch / "names").write_text(f"subjectAltName=DNS:{HOST}\n")
    sign = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"]
    openssl("x509", "-req", "-in", "host.csr", "-out", "host.pem", *sign)


def read(stream):
    """A request: its first line and its body."""
    head = b""
    while b"\r\n\r\n" not in head:
        part = stream.recv(65536)
        if not part:
            return "", b""
        head += part
    head, body = head.split(b"\r\n\r\n", 1)
    lines = head.decode().split("\r\n")
    length = [int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length")]
    while length and len(body) < length[0]:
        body += stream.recv(65536)
    return lines[0], body


def reply(body):
    """A reply of a model with the API of OpenAI, streamed where that is asked for."""
    asked = json.loads(body or b"{}")
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    if not asked.get("stream"):
        message = {"role": "assistant", "content": "Lima."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return "application/json", json.dumps({"choices": [choice], "usage": usage})
    choices = [{"index": 0, "delta": {"content": "Lima."}, "finish_reason": None}]
    end = [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    parts = [{"choices": choices}, {"choices": end}, {"choices": [], "usage": usage}]
    lines = [f"data: {json.dumps(part)}\n\n" for part in parts]
    return "text/event-stream", "".join(lines) + "data: [DONE]\n\n"


def serve(stream, context, asked):
    line, _ = read(stream)
    if not line.startswith(f"CONNECT {HOST}:443"):
        return stream.close()
    stream.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    try:
        inside = context.wrap_socket(stream, server_side=True)
        while True:
            line, body = read(inside)
            if not line:
                return
            asked.append(line)
            kind, text = reply(body) if line.startswith("POST") else ("application/json", '{"data": []}')
            head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\n\r\n"
            inside.sendall((head + text).encode())
    except (ssl.SSLError, OSError):
        return


def run(proxy, **more):
    home, work = scratch / "home", scratch / "work"
    home.mkdir(exist_ok=True)
    work.mkdir(exist_ok=True)
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "HTTPS_PROXY": proxy, **more}
    words = ["run", "What is the capital of Peru?", "--model", f"https://{HOST}/v1#m"]
    done = subprocess.run(
        [gyrus, *words], env=environment, cwd=work, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


certificates()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(scratch / "host.pem", scratch / "host.key")
listener = socket.create_server(("127.0.0.1", 0))
asked = []


def accept():
    while True:
        stream, _ = listener.accept()
        threading.Thread(target=serve, args=(stream, context, asked), daemon=True).start()


threading.Thread(target=accept, daemon=True).start()
proxy = f"http://127.0.0.1:{listener.getsockname()[1]}"
code, said = run(proxy)
if code == 0 or asked:
    sys.exit(f"a certificate of an unknown authority was believed: {code} {said}")
print("without its authority:", said.strip().splitlines()[-1][:160])
code, said = run(proxy, SSL_CERT_FILE=str(scratch / "ca.pem"))
if code != 0 or "Lima" not in said:
    sys.exit(f"with its authority: {code} {said}")
print("with SSL_CERT_FILE: it answers, by", len(asked), "requests through the proxy")

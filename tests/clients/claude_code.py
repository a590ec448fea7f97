"""Runs Claude Code with a fake model on this machine.

    claude_code.py CLAUDE HOME COMMAND ARGUMENT...

CLAUDE is its program, HOME an empty folder; the command starts the server named `proxy`. Prints one
JSON object with the texts that reached the model: from a prompt of the server (a slash command),
from one of its resources (`@`, which `-p` does not support, so a terminal is used), and from a tool
that asks the user, whom `-p` does not have.
"""

import http.server
import json
import os
import pty
import subprocess
import sys
import threading
import time

KEY = "sk-ant-no-key-of-anybody-0000"
ASKS_OF_TERMINAL_MAX = 20
REQUEST_TIMEOUT_S = 20
RUN_TIMEOUT_S = 50


class Model(http.server.BaseHTTPRequestHandler):
    """Answers `ok`, except that it once calls the tool that a text names after `CALL`."""

    protocol_version = "HTTP/1.1"
    seen = []
    came = threading.Condition()

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])) or "{}")
        if not self.path.startswith("/v1/messages") or "count_tokens" in self.path:
            return self.answer("application/json", json.dumps({"input_tokens": 1}))
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
        message |= {"model": body["model"], "stop_reason": None, "usage": usage}
        block, delta, reason = said(body["messages"])
        if body.get("stream"):
            events = [
                {"type": "message_start", "message": message},
                {"type": "content_block_start", "index": 0, "content_block": block},
                {"type": "content_block_delta", "index": 0, "delta": delta},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
                {"type": "message_stop"},
            ]
            lines = [f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in events]
            self.answer("text/event-stream", "".join(lines))
        else:
            message |= {"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"}
            self.answer("application/json", json.dumps(message))
        with Model.came:
            Model.seen.append(body["messages"])
            Model.came.notify_all()

    def answer(self, kind, text):
        text = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def said(messages):
    """Returns the content block of the model, its delta, and the stop reason."""
    text = json.dumps(messages)
    if "CALL " not in text or "tool_result" in text:
        return {"type": "text", "text": ""}, {"type": "text_delta", "text": "ok"}, "end_turn"
    tool = text.split("CALL ")[1].split('"')[0]
    arguments = json.dumps({"tool_name": tool, "tool_input": {}})
    name = "mcp__proxy__execute_dynamic_tool"
    block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
    return block, {"type": "input_json_delta", "partial_json": arguments}, "tool_use"


def prepare(home, server):
    """Prepares a home folder without first-run questions."""
    work = os.path.join(home, "work")
    os.mkdir(work)
    command, *arguments = server
    config = {"mcpServers": {"proxy": {"command": command, "args": arguments}}}
    with open(os.path.join(home, "servers.json"), "w") as file:
        json.dump(config, file)
    known = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "projects": {work: {"hasTrustDialogAccepted": True}},
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
    }
    with open(os.path.join(home, ".claude.json"), "w") as file:
        json.dump(known, file)
    return work


def main():
    program, home, *server = sys.argv[1:]
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    work = prepare(home, server)
    claude = [program, "--mcp-config", os.path.join(home, "servers.json"), "--strict-mcp-config"]
    claude += ["--allowedTools", "mcp__proxy,ReadMcpResourceTool"]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": home,
        "TERM": "xterm-256color",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.server_port}",
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "MCP_CONNECTION_NONBLOCKING": "0",
    }

    def printed(prompt):
        before = len(Model.seen)
        command = [claude[0], "-p", prompt, *claude[1:]]
        ran = subprocess.run(
            command,
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=RUN_TIMEOUT_S,
        )
        if len(Model.seen) == before:
            sys.exit(f"it asked its model nothing: {ran.stdout.decode()}")
        return json.dumps(Model.seen[-1])

    seen = {
        "prompt": printed("/mcp__proxy__any__greet Bob"),
        "asked": printed("CALL any/ask"),
        "resource": on_terminal(claude, work, environment, "read @proxy:note://one now", "the first"),
    }
    print(json.dumps(seen))


def on_terminal(claude, work, environment, prompt, wanted):
    """Types a prompt until the wanted text reaches the model: the server's lists arrive later."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(work)
        os.execve(claude[0], claude, environment)
    shown = bytearray()
    threading.Thread(target=drain, args=(terminal, shown), daemon=True).start()
    try:
        while "❯".encode() not in shown:
            time.sleep(0.1)
        for _ in range(ASKS_OF_TERMINAL_MAX):
            before = len(Model.seen)
            os.write(terminal, prompt.encode())
            # A newline in the same chunk as the text would be part of the text.
            time.sleep(0.5)
            os.write(terminal, b"\r")
            with Model.came:
                Model.came.wait_for(lambda: len(Model.seen) > before, REQUEST_TIMEOUT_S)
            for messages in Model.seen[before:]:
                if wanted in json.dumps(messages):
                    return json.dumps(messages)
        return shown.decode(errors="replace")[-2000:]
    finally:
        os.kill(child, 15)
        os.waitpid(child, 0)


def drain(terminal, shown):
    try:
        while piece := os.read(terminal, 65536):
            shown.extend(piece)
    except OSError:
        pass


main()

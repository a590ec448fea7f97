#!/usr/bin/env python3
"""Installs the servers of `servers.tsv` in the listed versions, and writes their `tools/list`.

usage: capture.py FOLDER [SERVER...] > TOOLS.jsonl

FOLDER gets one folder a server, and may be deleted afterwards. A line of the output is a tool: its server, name,
description and input schema. Needs npm, python3.12 and python3.13. No server gets a valid key. A server that does not answer is named on standard error, and the exit code is 1.
"""

import csv
import http.server
import json
import os
import pathlib
import select
import socketserver
import subprocess
import sys
import threading
import time

ANSWER_SECONDS = 90
HERE = pathlib.Path(__file__).parent


def install(row, folder):
    """Installs the package; returns the folder of its programs."""
    package, version, installer = row["package"], row["version"], row["installer"]
    if installer == "npm":
        programs = folder / "node_modules" / ".bin"
        if not programs.exists():
            folder.mkdir(parents=True, exist_ok=True)
            options = ["--no-audit", "--no-fund", "--ignore-scripts"]
            run("npm", "install", *options, "--prefix", str(folder), f"{package}@{version}")
        return programs
    programs = folder / "bin"
    if not programs.exists():
        run(installer, "-m", "venv", str(folder))
        run(str(programs / "pip"), "install", "-q", f"{package}=={version}")
    return programs


def run(*command):
    subprocess.run(command, check=True, stdout=sys.stderr)


class Docker(http.server.BaseHTTPRequestHandler):
    """Answers what the server `docker` asks Docker before it lists tools."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = json.dumps({"Version": "27.0.0", "ApiVersion": "1.46", "MinAPIVersion": "1.24"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


class DockerServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True


def list_tools(command, environment, folder):
    """Starts a server, and returns its tools."""
    started = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(folder / "stderr", "wb"),
        env=environment, cwd=folder, start_new_session=True,
    )
    try:
        ends = time.monotonic() + ANSWER_SECONDS
        capabilities = {"roots": {}, "elicitation": {}, "sampling": {}}
        about = {"protocolVersion": "2025-06-18", "capabilities": capabilities,
                 "clientInfo": {"name": "capture", "version": "1"}}
        send(started, {"id": 0, "method": "initialize", "params": about})
        receive(started, 0, ends)
        send(started, {"method": "notifications/initialized"})
        tools, cursor = [], None
        for page in range(1, 50):
            send(started, {"id": page, "method": "tools/list", "params": {"cursor": cursor} if cursor else {}})
            result = receive(started, page, ends)
            tools += result["tools"]
            cursor = result.get("nextCursor")
            if not cursor:
                return tools
        return tools
    finally:
        try:
            os.killpg(started.pid, 9)
        except ProcessLookupError:
            pass
        started.wait()


def send(server, message):
    server.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
    server.stdin.flush()


def receive(server, number, ends):
    """Returns the result with this number; other messages are left out."""
    line = b""
    while time.monotonic() < ends:
        ready, _, _ = select.select([server.stdout], [], [], 0.5)
        if not ready:
            continue
        piece = os.read(server.stdout.fileno(), 1 << 16)
        if not piece:
            raise OSError("the server ended")
        line += piece
        while b"\n" in line:
            whole, line = line.split(b"\n", 1)
            try:
                message = json.loads(whole)
            except ValueError:
                continue
            if isinstance(message, dict) and message.get("id") == number and "method" not in message:
                if "result" not in message:
                    raise OSError(json.dumps(message.get("error"))[:200])
                return message["result"]
    raise OSError(f"no answer in {ANSWER_SECONDS} s")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, wanted = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    docker = DockerServer(("127.0.0.1", 0), Docker)
    threading.Thread(target=docker.serve_forever, daemon=True).start()
    missing = 0
    with open(HERE / "servers.tsv") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    for row in rows:
        if wanted and row["server"] not in wanted:
            continue
        try:
            of_server = folder / row["server"]
            programs = install(row, of_server)
            environment = {it: os.environ[it] for it in ("PATH", "LANG") if it in os.environ}
            environment["HOME"] = str(of_server)
            port = docker.server_address[1]
            pairs = row["environment"].format(folder=of_server, port=port).split()
            environment.update(pair.split("=", 1) for pair in pairs)
            program, *arguments = row["command"].format(folder=of_server, port=port).split()
            tools = list_tools([str(programs / program), *arguments], environment, of_server)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{row['server']}: {error}", file=sys.stderr)
            missing += 1
            continue
        if len(tools) != int(row["tools"]):
            print(f"{row['server']}: {len(tools)} tools, not {row['tools']}", file=sys.stderr)
        for tool in tools:
            line = {"server": row["server"], "name": tool["name"], "description": tool.get("description", ""),
                    "input_schema": tool.get("inputSchema", {})}
            print(json.dumps(line, ensure_ascii=False), flush=True)
    sys.exit(1 if missing else 0)


main()

"""Calls a tool through an installed program, as a client's model does, and prints how long it took since the install.

    first_call.py WHAT BYTES BEGAN ROOT PROGRAM...

ROOT is the root folder of the program's machine, or empty; BEGAN is the time of the install line.
"""

import json
import os
import subprocess
import sys
import time

what, size, began, root, *program = sys.argv[1:]
home = f"{root}/root" if root else os.environ["HOME"]
config = f"{home}/.config/proxy/config.toml"

os.makedirs(os.path.dirname(config), exist_ok=True)
with open(config, "w") as file:
    file.write('[commands.greet]\ncommand = ["echo", "hello {name}"]\ndescription = "Greet a person by name."\n')

server = subprocess.Popen([*program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(id, method, params):
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    server.stdin.write(json.dumps(message) + "\n")
    server.stdin.flush()
    while line := server.stdout.readline():
        answer = json.loads(line)
        if answer.get("id") == id:
            return answer["result"]
    sys.exit(f"== {what}: the program ended before it answered {method}")


def call(id, name, arguments):
    result = ask(id, "tools/call", {"name": name, "arguments": arguments})
    text = result["content"][0]["text"]
    if result.get("isError"):
        sys.exit(f"== {what}: {name}: {text}")
    return text


client = {"name": "fresh", "version": "1"}
ask(1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
server.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
tools = [tool["name"] for tool in ask(2, "tools/list", {})["tools"]]
hits = call(3, "search_tools", {"query": "greet a person"})
assert "commands/greet" in hits, hits
said = call(4, "execute_dynamic_tool", {"tool_name": "commands/greet", "tool_input": {"name": "Ada"}})
assert "hello Ada" in said, said
seconds = time.time() - float(began)
server.stdin.close()
server.wait()
doctor = subprocess.run([*program, "doctor"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
subprocess.run([*program, "daemon", "stop"], stdin=subprocess.DEVNULL, capture_output=True)
lines = doctor.stdout.strip().splitlines() or [doctor.stderr.strip()]
print(f"== {what}: {int(size):,} bytes, first good call after {seconds:.1f} s; doctor: {lines[-1]}")

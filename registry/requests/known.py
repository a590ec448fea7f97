#!/usr/bin/env python3
"""Writes `known.tsv`: for each tool of the known servers, sentences that it serves.

usage: known.py SERVERS REQUESTS... > known.tsv

SERVERS is a folder of snapshots, `{"name", "initialize", "tools"}`, with `manifest.json` beside it (shared/servers).
REQUESTS are files of lines `WAY<TAB>SERVER/TOOL[ | SERVER/TOOL...]<TAB>REQUEST`, as in crates/encoder/training; of
these the ways `s` (a sentence) and `i` (a need) are taken, at most one each per tool, the one that names the fewest
tools.
"""

import json
import pathlib
import sys
from collections import defaultdict

TOOLS_MAX = 3
CHARS_MAX = 300


def names_of_servers(folder):
    names = defaultdict(list)
    manifest = json.loads((folder / "manifest.json").read_text())
    for server in manifest["servers"]:
        names[server["name"]].append(server["package"])
    for path in sorted((folder / "snapshots").glob("*.json")):
        snapshot = json.loads(path.read_text())
        info = snapshot["initialize"]["serverInfo"]
        if info.get("name"):
            names[snapshot["name"]].append(info["name"])
    return names


def main():
    servers, *files = map(pathlib.Path, sys.argv[1:])
    names = names_of_servers(servers)
    best = defaultdict(dict)
    for path in files:
        for line in path.read_text().splitlines():
            way, tools, request = line.split("\t", 2)
            tools = tools.split(" | ")
            if way not in "si" or tools == ["-"] or len(request) > CHARS_MAX:
                continue
            for tool in tools[:TOOLS_MAX]:
                known = best[tool].get(way)
                if known is None or len(tools) < known[0]:
                    best[tool][way] = (len(tools), request)
    by_server = defaultdict(list)
    for tool, ways in sorted(best.items()):
        server, tool = tool.split("/", 1)
        for way in sorted(ways, reverse=True):
            by_server[server].append(f"{tool}\t{ways[way][1]}")
    print("# Requests that tools of known servers serve: made by known.py, read by crates/registry/src/requests.rs.")
    by_server.pop("", None)
    for server, lines in sorted(by_server.items()):
        own = [server]
        own += [name for name in names[server] if name not in own]
        print("= " + " | ".join(own))
        print("\n".join(lines))


main()

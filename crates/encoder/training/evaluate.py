#!/usr/bin/env python3
"""Scores the encoder as the program has it, and search as a whole.

usage: evaluate.py ENCODER_FOLDER [--eval PROGRAM] [--shared ../shared] [--sets NAME,NAME...]

ENCODER_FOLDER holds `layers.bin`, `words.bin` and `vocab.txt` (`registry/encoder`, or what `make.py` made of what was
taught). PROGRAM is the example `eval` of the package `retrieval`, built with those files: it mixes words in, as search does.
Needs numpy.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import tempfile

import numpy as np

from documents import Pieces, read_lines, views
from network import PLACES, read_layers, read_words, run

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
# Of a tool, as `limits.rs` of the registry has it.
PIECES_ENCODED = 64
SETS = ("reference", "livemcp", "toollinkos", "servers")
OF_SERVERS = ("own", "nothing")
THRESHOLDS = (0.22, 0.26, 0.30, 0.34, 0.38, 0.42, 0.46, 0.50)


class Encoder:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.words, self.places = read_words((folder / "words.bin").read_bytes())
        self.pieces = Pieces(folder / "vocab.txt")
        self.first, self.layers = read_layers((folder / "layers.bin").read_bytes())

    def of(self, text, most=PLACES):
        ids = self.pieces.of(text, most)
        return run(self.words[ids] + self.places[: len(ids)], [len(ids)], self.first, self.layers)[0]

    def of_tool(self, server, tool):
        return self.of(views(server, tool)[0], PIECES_ENCODED)


def read_set(name, shared):
    """Tools, requests."""
    if name != "servers":
        folder = pathlib.Path(shared, "retrieval", "dev", name)
        return read_lines(folder / "tools.jsonl"), read_lines(folder / "queries.jsonl")
    tools = []
    for path in sorted(pathlib.Path(shared, "servers", "snapshots").glob("*.json")):
        snapshot = json.loads(path.read_text(encoding="utf8"))
        for tool in snapshot["tools"]:
            schema = tool.get("inputSchema") or {"type": "object"}
            said = {"name": tool["name"], "description": tool.get("description") or "", "input_schema": schema}
            tools.append({"server": snapshot["name"], **said})
    folders = [ROOT / "tests" / "retrieval" / it for it in OF_SERVERS]
    return tools, [request for it in folders for request in read_lines(it / "queries.jsonl")]


def marks(right, ranking):
    """recall@1, recall@5, nDCG@5 as `score.py` has them."""
    hits = [it in right for it in ranking[:5]]
    gained = sum(hit / math.log2(at + 2) for at, hit in enumerate(hits))
    ideal = sum(1 / math.log2(at + 2) for at in range(min(5, len(right))))
    return float(hits[0]), sum(hits) / min(5, len(right)), gained / ideal


def alone(encoder, tools, requests):
    """Marks of each request that is served, and the nearest tool's cosine of each request."""
    names = [(tool["server"], tool["name"]) for tool in tools]
    vectors = np.stack([encoder.of_tool(tool["server"], tool) for tool in tools])
    asked, near = [], []
    for request in requests:
        cosines = vectors @ encoder.of(request["query"])
        best = np.argsort(-cosines, kind="stable")[:5]
        near.append((request, float(cosines[best[0]])))
        if request["relevant"]:
            right = {tuple(it) for it in request["relevant"]}
            asked.append((request.get("kind", ""), marks(right, [names[at] for at in best])))
    return asked, near


def by_kind(asked):
    kinds = {"all": [it for _, it in asked]}
    for kind, it in asked:
        kinds.setdefault(kind, []).append(it)
    for kind, rows in kinds.items():
        if kind:
            print(f"  {kind:10}{len(rows):6}" + "".join(f"{it:8.3f}" for it in np.mean(rows, axis=0)))


def refusals(near):
    """The share of requests whose nearest tool stays below a cosine."""
    kinds = {}
    for request, cosine in near:
        kind = request.get("kind", "") if not request["relevant"] else "served"
        kinds.setdefault(kind, []).append(cosine)
    print("  refused below" + "".join(f"{it:7.2f}" for it in THRESHOLDS))
    for kind, cosines in kinds.items():
        shares = [np.mean(np.array(cosines) < it) for it in THRESHOLDS]
        print(f"  {kind:10}{len(cosines):3}" + "".join(f"{it:7.2f}" for it in shares))


def mixed(program, tools, requests):
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("tools", tools), ("queries", requests)):
            text = "".join(json.dumps(it, ensure_ascii=False) + "\n" for it in rows)
            pathlib.Path(folder, f"{name}.jsonl").write_text(text, encoding="utf8")
        files = ["--tools", f"{folder}/tools.jsonl", "--queries", f"{folder}/queries.jsonl"]
        subprocess.run([program, *files, "--only", "encoder", "--unservable", "0"], check=True)


def main():
    arguments = argparse.ArgumentParser(usage=__doc__)
    arguments.add_argument("encoder")
    arguments.add_argument("--eval")
    arguments.add_argument("--shared", default=os.fspath(ROOT.parent / "shared"))
    arguments.add_argument("--sets", default=",".join(SETS))
    arguments = arguments.parse_args()
    encoder = Encoder(arguments.encoder)
    for name in arguments.sets.split(","):
        tools, requests = read_set(name, arguments.shared)
        asked, near = alone(encoder, tools, requests)
        print(f"{name}, the encoder alone: recall@1, recall@5, nDCG@5")
        by_kind(asked)
        refusals(near)
        if arguments.eval:
            print(f"{name}, as search mixes", flush=True)
            mixed(arguments.eval, tools, requests)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Teaches the encoder which tool serves a request.

usage: train.py MODEL_FOLDER OUT_FOLDER [--from FOLDER...] [--steps N] [--seed N] [--shared ../shared]

MODEL_FOLDER holds all-MiniLM-L6-v2 as published. With --from, the run starts with the weights of an earlier run, or with the
mean of several; with --steps 0, that is the result. OUT_FOLDER gets `model.safetensors` and `log.tsv`. README.md describes
the training data. Needs 10 GB of memory.
"""
import argparse
import hashlib
import pathlib
import random
import shutil
import time

import numpy as np
import torch
from safetensors.numpy import save_file
from torch.nn import functional as F

from documents import Pieces, read_lines, read_tools, speak, tool_of, views
from model import Encoder, embed_texts

HERE = pathlib.Path(__file__).parent
TOOLS_A_STEP, TOOLS_A_GROUP, REQUESTS_A_TOOL = 256, 4, 2
# Requests of a step that nothing serves.
UNSERVED = 8
TEMPERATURE = 0.05
BACK_WEIGHT = 0.5
RATE, WARM, FALL, LEAST = 1.2e-4, 0.06, 0.8, 0.03
# The result is a mean of the weights of some 20 steps.
MEAN_KEEPS = 0.95
# The requests in English; the definition of `search_tools` asks for it.
WAYS = "asitxn"
OF_PEOPLE = "si"
# The text that the program embeds most often.
VIEWS = (0, 0, 0, 0, 1, 2)
# A tool of this share stands in a step by another request that it serves: the program compares with those too.
BY_REQUEST = 0.25
# This share of the requests has a slip of the keyboard.
SLIPS = 0.08
# Tools of other files that are so alike may serve the request too: its author did not see them.
ALIKE_ELSEWHERE, ALIKE_HERE = 0.60, 0.93
HELD_OUT_EVERY = 14
PIECES_MAX = 64
CHECK_EVERY = 115


class Data:
    """Tools, requests, and which of them must not be taken for wrong."""

    def __init__(self, shared, pieces):
        tools = read_tools(shared)
        written = {path: read_lines(path) for path in sorted((HERE / "servers").glob("*.jsonl"))}
        for row in (row for rows in written.values() for row in rows):
            tools.setdefault((row["server"], row["name"]), tool_of(row))
        self.names = list(tools)
        self.at = {name: place for place, name in enumerate(self.names)}
        texts = [views(server, tool) for (server, _), tool in tools.items()]
        self.views = [[pieces.of(text, PIECES_MAX) for text in of_tool] for of_tool in texts]
        spoken = {}
        self.said = torch.tensor([spoken.setdefault(speak(name), len(spoken)) for _, name in self.names])
        self.file = torch.full((len(self.names),), -1)
        self.requests, self.unserved, self.held = [], [], []
        self.pieces = pieces
        for number, path in enumerate(sorted((HERE / "requests").glob("*.tsv"))):
            for line in path.read_text(encoding="utf8").splitlines():
                way, right, text = line.split("\t")
                right = [tuple(it.split("/", 1)) for it in right.split(" | ")] if right != "-" else []
                self.add(right, way, text, number)
        for number, rows in enumerate(written.values(), 1_000):
            for row in rows:
                right = [(row["server"], it) for it in [row["name"], *row["also"]]]
                for way in WAYS:
                    for text in row.get(way, ()):
                        self.add(right, way, text, number)

    def add(self, right, way, text, file):
        if way not in WAYS:
            return
        right = [self.at[it] for it in right if it in self.at]
        self.file[[it for it in right if self.file[it] < 0]] = file
        held = any(self.is_held(it) for it in right)
        kind = self.held if held else self.requests if right else self.unserved
        kind.append((right, way, self.pieces.of(text, PIECES_MAX), file, text))

    def is_held(self, tool):
        digest = hashlib.sha256(self.names[tool][0].encode()).digest()
        return int.from_bytes(digest[:4], "big") % HELD_OUT_EVERY == 0

    def wrong(self, request, tools, base):
        """Which of these tools surely do not serve the request."""
        right, file = request[0], request[3]
        here = self.file[tools] == file
        if not right:
            return here
        alike = (base[tools] @ base[right].T).max(1).values
        same = (self.said[tools][:, None] == self.said[right][None, :]).any(1)
        unlike = torch.where(here, alike < ALIKE_HERE, alike < ALIKE_ELSEWHERE)
        return unlike & ~same


def groups(data, base, dice):
    """Every tool with requests once, beside those that are like it; half of them of its own server."""
    waiting = {tool for right, *_ in data.requests for tool in right[:1]}
    servers = [name[0] for name in data.names]
    order = sorted(waiting)
    dice.shuffle(order)
    made = []
    for tool in order:
        if tool not in waiting:
            continue
        near = (base @ base[tool]).topk(min(200, len(base))).indices.tolist()
        near = [it for it in near if it in waiting and it != tool]
        own = [it for it in near if servers[it] == servers[tool]]
        group = [tool, *own[: TOOLS_A_GROUP // 2]]
        group += [it for it in near if it not in group][: TOOLS_A_GROUP - len(group)]
        waiting.difference_update(group)
        made.append(group)
    dice.shuffle(made)
    return made


def slip(text, dice):
    """The text with one letter dropped, doubled or changed for its neighbour."""
    at = [it for it in range(1, len(text)) if text[it].isalpha() and text[it - 1].isalpha()]
    if not at:
        return text
    at = dice.choice(at)
    letters = dice.choice(("", text[at] * 2, text[at] + text[at - 1]))
    if len(letters) == 2 and letters[0] != letters[1]:
        return text[: at - 1] + letters + text[at + 1 :]
    return text[:at] + letters + text[at + 1 :]


def steps(data, base, dice):
    """Tools, their texts, and their requests, step after step, epoch after epoch."""
    while True:
        of_tool = {}
        for request in data.requests:
            first = request[0][0] if dice.random() < 0.6 else dice.choice(request[0])
            of_tool.setdefault(first, []).append(request)
        unserved = dice.sample(data.unserved, len(data.unserved))
        tools = []
        for group in groups(data, base, dice):
            tools += group
            if len(tools) < TOOLS_A_STEP:
                continue
            asked, texts = [], []
            for tool in tools:
                mine = of_tool.get(tool, [])
                mine = dice.sample(mine, len(mine))
                spare = [it[2] for it in mine[REQUESTS_A_TOOL:] if len(it[0]) == 1]
                # One view of each tool at a time: each must serve by itself.
                by_request = spare and dice.random() < BY_REQUEST
                texts.append(spare[0] if by_request else data.views[tool][dice.choice(VIEWS)])
                asked += [(tool, it) for it in mine[:REQUESTS_A_TOOL]]
            asked += [(-1, unserved.pop()) for _ in range(min(UNSERVED, len(unserved)))]
            slips = [it[2] if dice.random() > SLIPS else data.pieces.of(slip(it[4], dice), PIECES_MAX) for _, it in asked]
            yield tools, texts, asked, slips
            tools = []


def losses(encoder, data, base, tools, texts, asked, said):
    """The loss of requests that look for their tool, and of tools that look for their request."""
    with torch.autocast("cpu", torch.bfloat16):
        vectors = encoder(texts + said)
    near = vectors[len(texts) :] @ vectors[: len(texts)].T / TEMPERATURE
    place = {tool: at for at, tool in enumerate(tools)}
    ids = torch.tensor(tools)
    every = torch.ones(len(tools), dtype=torch.bool)
    wrong = torch.stack([data.wrong(it, ids, base) if tool >= 0 else every for tool, it in asked])
    rows = torch.tensor([row for row, (tool, _) in enumerate(asked) if tool >= 0])
    right = torch.tensor([place[tool] for tool, _ in asked if tool >= 0])
    kept = wrong.clone()
    kept[rows, right] = True
    near = near.masked_fill(~kept, -1e4)
    # A tool that is near to everything is near to requests that others serve.
    back = torch.full((len(rows), len(asked)), -1e4)
    back = torch.where(wrong.T[right], near.T[right], back)
    back[torch.arange(len(rows)), rows] = near[rows, right]
    return F.cross_entropy(near[rows], right), F.cross_entropy(back, rows)


def check(encoder, data):
    """Recall among all tools, of what people ask of the servers held out."""
    held = [it for it in data.held if it[1] in OF_PEOPLE]
    held = random.Random(1).sample(held, min(len(held), 600))
    with torch.autocast("cpu", torch.bfloat16):
        documents = embed_texts(encoder, [it[0] for it in data.views])
        requests = embed_texts(encoder, [it[2] for it in held])
    best = (requests @ documents.T).topk(5).indices.tolist()
    first = np.mean([row[0] in it[0] for row, it in zip(best, held)])
    five = np.mean([any(at in it[0] for at in row) for row, it in zip(best, held)])
    return f"{first:.4f}", f"{five:.4f}", documents


def mean_of(encoders):
    states = [it.state_dict() for it in encoders]
    return {name: torch.stack([it[name] for it in states]).mean(0) for name in states[0]}


def train(encoder, data, arguments):
    out, dice, began = arguments.out, random.Random(arguments.seed), time.time()
    log = (out / "log.tsv").open("w", encoding="utf8")

    def say(*values):
        print(*values, sep="\t", file=log, flush=True)
        print(*values, sep="\t", flush=True)

    say("# requests", len(data.requests), "held out", len(data.held), "tools", len(data.names))
    say("# step", "loss", "recall@1", "recall@5", "seconds")
    # Which tools are alike is taken from the first weights.
    first, five, base = check(encoder, data)
    say(0, "-", first, five, 0)
    big = [it for it in encoder.parameters() if it.dim() > 1]
    small = [it for it in encoder.parameters() if it.dim() == 1]
    parts = [{"params": big, "weight_decay": 0.01}, {"params": small, "weight_decay": 0.0}]
    learner = torch.optim.AdamW(parts, betas=(0.9, 0.98))
    mean = Encoder(encoder.words.num_embeddings)
    mean.load_state_dict(encoder.state_dict())
    source, running = steps(data, base, dice), None
    for step in range(1, arguments.steps + 1):
        left = (arguments.steps - step + 1) / arguments.steps
        for part in learner.param_groups:
            part["lr"] = RATE * min(1, step / (WARM * arguments.steps), max(LEAST, left / FALL))
        encoder.train()
        forward, backward = losses(encoder, data, base, *next(source))
        learner.zero_grad()
        (forward + BACK_WEIGHT * backward).backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        learner.step()
        keeps = min(MEAN_KEEPS, step / (step + 9))
        with torch.no_grad():
            for ours, theirs in zip(mean.parameters(), encoder.parameters()):
                ours.lerp_(theirs, 1 - keeps)
        running = forward.item() if running is None else 0.9 * running + 0.1 * forward.item()
        if step % CHECK_EVERY == 0 or step == arguments.steps:
            first, five, _ = check(mean, data)
            say(step, f"{running:.4f}", first, five, f"{time.time() - began:.0f}")
    save_file(mean.published(), out / "model.safetensors")


def main():
    arguments = argparse.ArgumentParser(usage=__doc__)
    arguments.add_argument("model", type=pathlib.Path)
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("--from", dest="start", nargs="+", type=pathlib.Path)
    arguments.add_argument("--shared", default="../shared")
    arguments.add_argument("--steps", type=int, default=230)
    arguments.add_argument("--seed", type=int, default=7)
    arguments = arguments.parse_args()
    torch.manual_seed(arguments.seed)
    arguments.out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(arguments.model / "vocab.txt", arguments.out / "vocab.txt")
    pieces = Pieces(arguments.out / "vocab.txt")
    data = Data(arguments.shared, pieces)
    encoder = Encoder(len(pieces.ids)).read(arguments.model)
    if arguments.start:
        encoder.load_state_dict(mean_of([Encoder(len(pieces.ids)).read(it) for it in arguments.start]))
    train(encoder, data, arguments)


if __name__ == "__main__":
    main()

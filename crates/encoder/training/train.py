#!/usr/bin/env python3
"""Teaches the encoder which tool serves a request.

usage: train.py MODEL_FOLDER OUT_FOLDER [--shared ../shared] [--steps N] [--seed N] [--resume]

MODEL_FOLDER holds all-MiniLM-L6-v2 as published; OUT_FOLDER gets `model.safetensors` (the best step by
the requests of servers held out), a checkpoint every 25 steps, and `log.tsv`. README.md says what is trained on.
"""
import argparse
import hashlib
import pathlib
import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from safetensors.numpy import save_file
from torch.nn import functional as F

from documents import Pieces, read_tools, speak, views
from model import Encoder, embed_texts

HERE = pathlib.Path(__file__).parent
TOOLS_A_STEP, TOOLS_A_GROUP, REQUESTS_A_TOOL = 96, 4, 2
# Parts of a step, one thread each: threads inside of one product wait for each other on a busy machine.
THREADS = 2
# Requests that nothing serves, beside those of a part.
UNSERVED = 4
TEMPERATURE = 0.05
BACK_WEIGHT = 0.5
RATE, WARM, LAST = 8e-5, 15, 0.7
# Its vocabulary has these scripts' letters alone.
UNREAD = ("ja", "ru", "zh")
# The text that the program embeds most often.
VIEWS = (0, 0, 0, 1, 2)
# Tools of other chunks that are so alike may serve the request too: its author did not see them.
ALIKE_ELSEWHERE, ALIKE_HERE = 0.60, 0.93
HELD_OUT_EVERY = 14
PIECES_MAX = 72
CHECK_EVERY = 25


class Data:
    """Tools, requests, and which of them must not be taken for wrong."""

    def __init__(self, shared, pieces):
        tools = read_tools(shared)
        self.names = list(tools)
        at = {name: place for place, name in enumerate(self.names)}
        texts = [views(server, tool) for (server, _), tool in tools.items()]
        self.views = [[pieces.of(text, PIECES_MAX) for text in of_tool] for of_tool in texts]
        spoken = {}
        said = [spoken.setdefault(speak(name), len(spoken)) for _, name in self.names]
        self.said = torch.tensor(said)
        self.chunk = torch.full((len(self.names),), -1)
        self.requests, self.held = [], []
        for number, path in enumerate(sorted((HERE / "requests").glob("*.tsv"))):
            for line in path.read_text(encoding="utf8").splitlines():
                way, right, text = line.split("\t")
                if way in UNREAD:
                    continue
                right = [at[tuple(it.split("/", 1))] for it in right.split(" | ")] if right != "-" else []
                own = [it for it in right if self.chunk[it] < 0]
                self.chunk[own] = number
                request = (right, way, pieces.of(text, PIECES_MAX), number)
                (self.held if any(self.is_held(it) for it in right) else self.requests).append(request)

    def is_held(self, tool):
        digest = hashlib.sha256(self.names[tool][0].encode()).digest()
        return int.from_bytes(digest[:4], "big") % HELD_OUT_EVERY == 0

    def wrong(self, request, tools, base):
        """Which of these tools surely do not serve the request."""
        right, _, _, chunk = request
        here = self.chunk[tools] == chunk
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
        near = (base @ base[tool]).topk(min(120, len(base))).indices.tolist()
        near = [it for it in near if it in waiting and it != tool]
        own = [it for it in near if servers[it] == servers[tool]]
        group = [tool, *own[: TOOLS_A_GROUP // 2]]
        group += [it for it in near if it not in group][: TOOLS_A_GROUP - len(group)]
        waiting.difference_update(group)
        made.append(group)
    dice.shuffle(made)
    return made


def parts(data, base, dice):
    """Parts of steps, tools and their requests, epoch after epoch."""
    nothing = [it for it in data.requests if not it[0]]
    while True:
        of_tool = {}
        for request in data.requests:
            if request[0]:
                first = request[0][0] if dice.random() < 0.6 else dice.choice(request[0])
                of_tool.setdefault(first, []).append(request)
        dice.shuffle(nothing)
        unserved = iter(nothing)
        batch = []
        for group in groups(data, base, dice):
            batch += group
            if len(batch) < TOOLS_A_STEP // THREADS:
                continue
            asked = []
            for tool in batch:
                mine = of_tool.get(tool, [])
                asked += [(tool, it) for it in dice.sample(mine, min(len(mine), REQUESTS_A_TOOL))]
            asked += [(-1, it) for _, it in zip(range(UNSERVED), unserved)]
            yield batch, asked
            batch = []


def learn(encoder, data, base, batch, asked, dice):
    """Of a part: the gradients, and the loss towards tools."""
    # One view of each tool at a time: each must serve by itself.
    texts = [data.views[tool][dice.choice(VIEWS)] for tool in batch]
    with torch.autocast("cpu", torch.bfloat16):
        vectors = encoder(texts + [it[2] for _, it in asked])
    near = vectors[len(texts) :] @ vectors[: len(texts)].T / TEMPERATURE
    place = {tool: at for at, tool in enumerate(batch)}
    ids = torch.tensor(batch)
    nothing = torch.zeros(len(batch), dtype=torch.bool)
    wrong = torch.stack([data.wrong(it, ids, base) if tool >= 0 else ~nothing for tool, it in asked])
    rows = torch.tensor([row for row, (tool, _) in enumerate(asked) if tool >= 0])
    right = torch.tensor([place[tool] for tool, _ in asked if tool >= 0])
    kept = wrong.clone()
    kept[rows, right] = True
    near = near.masked_fill(~kept, -1e4)
    forward = F.cross_entropy(near[rows], right)
    # The other way round: a tool that is near to everything is near to requests that others serve.
    back = torch.full((len(rows), len(asked)), -1e4)
    back = torch.where(wrong.T[right], near.T[right], back)
    back[torch.arange(len(rows)), rows] = near[rows, right]
    backward = F.cross_entropy(back, rows)
    loss = (forward + BACK_WEIGHT * backward) / THREADS
    return torch.autograd.grad(loss, list(encoder.parameters())), forward.item()


def learn_surely(encoder, data, base, batch, asked, seed):
    """Once more where oneDNN of torch 1.13 trips over its own threads (`bad_array_new_length`), some once in 100 steps."""
    for attempt in range(5):
        try:
            return learn(encoder, data, base, batch, asked, random.Random(seed))
        except RuntimeError:
            # What it keeps may be broken from then on: a new process goes on with `--resume`.
            if attempt == 4:
                raise


def check(encoder, data, dice_seed):
    """Recall of held-out servers' requests among their chunks' tools."""
    dice = random.Random(dice_seed)
    held = [it for it in data.held if it[1] != "n"]
    held = dice.sample(held, min(len(held), 300))
    tools = sorted({tool for it in held for tool in it[0]})
    rest = [it for it in range(len(data.names)) if it not in set(tools)]
    tools += sorted(dice.sample(rest, 200))
    with torch.autocast("cpu", torch.bfloat16):
        documents = embed_texts(encoder, [data.views[it][0] for it in tools])
        requests = embed_texts(encoder, [it[2] for it in held])
    best = (requests @ documents.T).topk(5).indices.tolist()
    first = np.mean([tools[row[0]] in it[0] for row, it in zip(best, held)])
    five = np.mean([any(tools[at] in it[0] for at in row) for row, it in zip(best, held)])
    return float(first), float(five)


def rate(step, steps):
    return RATE * min(1, (step + 1) / WARM, max(0.05, (steps - step) / (LAST * steps)))


def main():
    arguments = argparse.ArgumentParser(usage=__doc__)
    arguments.add_argument("model")
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("--shared", default="../shared")
    arguments.add_argument("--steps", type=int, default=300)
    arguments.add_argument("--seed", type=int, default=7)
    arguments.add_argument("--resume", action="store_true")
    arguments.add_argument("--base", type=pathlib.Path)
    arguments = arguments.parse_args()
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(pathlib.Path(arguments.model, "vocab.txt"), arguments.out / "vocab.txt")
    pieces = Pieces(arguments.out / "vocab.txt")
    data = Data(arguments.shared, pieces)
    encoder = Encoder(len(pieces.ids), dropout=0.0).read(arguments.model)
    base = first_look(encoder, data, arguments.base or arguments.out / "base.pt")
    train(encoder, data, base, arguments)


def first_look(encoder, data, path):
    """What tools mean before anything is learned: which are alike, whatever is learned later."""
    if not path.exists():
        with torch.autocast("cpu", torch.bfloat16):
            torch.save(embed_texts(encoder, [it[0] for it in data.views]), path)
    return torch.load(path)


def train(encoder, data, base, arguments):
    out, dice = arguments.out, random.Random(arguments.seed)
    groups_of = [[p for n, p in encoder.named_parameters() if (p.dim() > 1) == big] for big in (True, False)]
    learner = torch.optim.AdamW(
        [{"params": groups_of[0], "weight_decay": 0.01}, {"params": groups_of[1], "weight_decay": 0.0}],
        betas=(0.9, 0.98),
    )
    began, best, done = time.time(), -1.0, 0
    if arguments.resume:
        saved = torch.load(out / "checkpoint.pt")
        encoder.load_state_dict(saved["encoder"])
        learner.load_state_dict(saved["learner"])
        best, done = saved["best"], saved["done"]
    log = (out / "log.tsv").open("a", encoding="utf8")

    def say(*values):
        print(*values, sep="\t", file=log, flush=True)
        print(*values, sep="\t", flush=True)

    say("# requests", len(data.requests), "held out", len(data.held), "tools", len(data.names), "steps", arguments.steps)
    if not done:
        say("# step", "loss", "recall@1", "recall@5", "seconds")
        say(0, "-", *(f"{it:.4f}" for it in check(encoder, data, 1)), 0)
    running = None
    source, pool = parts(data, base, dice), ThreadPoolExecutor(THREADS)
    for step in range(arguments.steps):
        work = [next(source) for _ in range(THREADS)]
        if step < done:
            continue
        for group in learner.param_groups:
            group["lr"] = rate(step, arguments.steps)
        encoder.train()
        seeds = [(arguments.seed * 1_000_000 + step) * THREADS + part for part in range(THREADS)]
        learnt = list(pool.map(lambda it: learn_surely(encoder, data, base, *it[0], it[1]), zip(work, seeds)))
        for parameter, *sums in zip(encoder.parameters(), *(it[0] for it in learnt)):
            parameter.grad = sum(sums)
        told = sum(it[1] for it in learnt) / THREADS
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        learner.step()
        running = told if running is None else 0.9 * running + 0.1 * told
        if (step + 1) % 5 == 0:
            print(step + 1, f"{running:.4f}", f"{time.time() - began:.0f}", flush=True)
        if (step + 1) % CHECK_EVERY == 0 or step + 1 == arguments.steps:
            first, five = check(encoder, data, 1)
            say(step + 1, f"{running:.4f}", f"{first:.4f}", f"{five:.4f}", f"{time.time() - began:.0f}")
            if first + five > best:
                best = first + five
                save_file(encoder.published(), out / "model.safetensors")
            torch.save(
                {"encoder": encoder.state_dict(), "learner": learner.state_dict(), "best": best, "done": step + 1},
                out / "checkpoint.pt",
            )


if __name__ == "__main__":
    main()

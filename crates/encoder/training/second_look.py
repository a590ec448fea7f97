#!/usr/bin/env python3
"""Tries a second look at the best 20 tools: a network that reads a request and a tool together.

usage: second_look.py ENCODER_FOLDER UNSEEN_TOOLS [--shared ../shared] [--layers N] [--minutes N]

ENCODER_FOLDER is `registry/encoder`, whose weights are the first ones here. UNSEEN_TOOLS is what `tests/retrieval/unseen/capture.py` writes.
The score of a tool is its cosine by the temperature of training plus the output of the network, which is zero at first, so the network
learns what the cosine gets wrong. Prints recall@1 and recall@5 of held-out servers and of `unseen` beside the servers of
`SHARED/servers`, with the output counted 0 to 2 times. Decision 0008 has the result. Needs torch and safetensors.
"""
import argparse
import json
import pathlib
import random
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from documents import Pieces, read_lines, views
from model import HEADS, WIDTH, Encoder, embed_texts
from network import read_layers, read_words
from train import PIECES_MAX, TEMPERATURE, Data

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOP, PIECES_ENCODED = 20, 64
REQUESTS_A_STEP, WRONG_A_REQUEST, PAIRS_A_BATCH = 16, 5, 48
RATE, WARM, FRESH_RATE = 6e-5, 30, 10
SHARES = (0, 0.25, 0.5, 1, 2)
JUDGED = 250
JUDGE_EVERY_S = 540


def read_encoder(folder, count):
    """The encoder as the program has it: weights rounded to 5 bits."""
    words, places = read_words((folder / "words.bin").read_bytes())
    first, layers = read_layers((folder / "layers.bin").read_bytes())
    own = {"words.weight": words, "places.weight": places, "norm.weight": first[0], "norm.bias": first[1]}
    for number, ((qkv, qkv_bias, _), *others) in enumerate(layers):
        for at, name in enumerate(("query", "key", "value")):
            # The file has the attention's scale in the query's rows.
            scale = (WIDTH // HEADS) ** 0.5 if name == "query" else 1
            rows = slice(at * WIDTH, (at + 1) * WIDTH)
            own[f"layers.{number}.{name}.weight"] = qkv[rows] * scale
            own[f"layers.{number}.{name}.bias"] = qkv_bias[rows] * scale
        for name, norm, (weight, bias, behind) in zip(("seen", "wide", "narrow"), ("norm_seen", None, "norm"), others):
            own[f"layers.{number}.{name}.weight"], own[f"layers.{number}.{name}.bias"] = weight, bias
            if norm:
                own[f"layers.{number}.{norm}.weight"], own[f"layers.{number}.{norm}.bias"] = behind
    encoder = Encoder(count)
    encoder.load_state_dict({name: torch.tensor(np.ascontiguousarray(it, np.float32)) for name, it in own.items()})
    return encoder


class SecondLook(nn.Module):
    """The layers of the encoder over request and tool together, and a small network over both means."""

    def __init__(self, encoder, layers):
        super().__init__()
        self.encoder = encoder
        encoder.layers = encoder.layers[:layers]
        encoder.words.weight.requires_grad = False
        self.of_tool = nn.Parameter(torch.zeros(WIDTH))
        self.wide, self.last = nn.Linear(3 * WIDTH, 128), nn.Linear(128, 1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, pairs):
        order = sorted(range(len(pairs)), key=lambda at: sum(map(len, pairs[at])))
        parts = [self.batch([pairs[it] for it in order[at : at + PAIRS_A_BATCH]]) for at in range(0, len(order), PAIRS_A_BATCH)]
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(parts)[back]

    def batch(self, pairs):
        texts = [request + tool[1:] for request, tool in pairs]
        longest = max(map(len, texts))
        ids = torch.tensor([text + [0] * (longest - len(text)) for text in texts])
        ends, begins = (torch.tensor([len(it) for it in of])[:, None] for of in (texts, [request for request, _ in pairs]))
        place = torch.arange(longest)[None]
        asked, held = place < begins, place < ends
        place = torch.where(asked, place, (place - begins + 1).clamp(min=0))
        x = self.encoder.words(ids) + self.encoder.places(place) + (held & ~asked)[:, :, None] * self.of_tool
        x = self.encoder.norm(x)
        hidden = torch.zeros(ids.shape).masked_fill(~held, -1e4)[:, None, None, :]
        for layer in self.encoder.layers:
            x = layer(x, hidden, 0.0)
        request, tool = (self.mean(x, it) for it in (asked, held & ~asked))
        both = torch.cat([request, tool, request * tool], 1)
        return self.last(F.gelu(self.wide(both)))[:, 0]

    @staticmethod
    def mean(x, those):
        those = those[:, :, None].to(x.dtype)
        return (x * those).sum(1) / those.sum(1).clamp(min=1)


def best(requests, vectors, encoder, texts, is_right):
    """Of each request: its pieces, those of the best tools, their cosines, and which are right."""
    cosines = embed_texts(encoder, [ids for _, ids in requests]) @ vectors.T
    rows = zip(requests, *(it.tolist() for it in cosines.topk(TOP)))
    return [
        (ids, [texts[at] for at in places], torch.tensor(near), torch.tensor([is_right(request, at) for at in places]))
        for (request, ids), near, places in rows
    ]


def held_set(data, texts, vectors, encoder):
    held = [it for it in data.held if it[0] and it[1] in "sitx"]
    chosen = random.Random(5).sample(held, JUDGED)
    return best([(it[0], it[2]) for it in chosen], vectors, encoder, texts, lambda right, at: at in right)


def unseen_set(data, texts, encoder, pieces, arguments):
    tools = read_lines(arguments.unseen)
    snapshots = pathlib.Path(arguments.shared, "servers", "snapshots").glob("*.json")
    servers = {json.loads(it.read_text(encoding="utf8"))["name"] for it in snapshots}
    beside = [at for at, (server, _) in enumerate(data.names) if server in servers]
    names = [(it["server"], it["name"]) for it in tools] + [data.names[at] for at in beside]
    texts = [pieces.of(views(it["server"], it)[0], PIECES_ENCODED) for it in tools] + [texts[at] for at in beside]
    requests = [it for it in read_lines(ROOT / "tests/retrieval/unseen/queries.jsonl") if it["kind"] == "own"]
    asked = [({tuple(name) for name in it["relevant"]}, pieces.of(it["query"], PIECES_MAX)) for it in requests]
    return best(asked, embed_texts(encoder, texts), encoder, texts, lambda right, at: names[at] in right)


def judge(name, rows, look):
    with torch.no_grad():
        scored = [(near / TEMPERATURE, look([(ids, tool) for tool in tools]), right) for ids, tools, near, right in rows]
    told = [f"{name}: right tool in {TOP} {np.mean([bool(right.any()) for *_, right in scored]):.3f}"]
    for share in SHARES:
        ranked = [right[(near + share * more).topk(5).indices] for near, more, right in scored]
        one, five = np.mean([bool(it[0]) for it in ranked]), np.mean([bool(it.any()) for it in ranked])
        told.append(f"{share}: {one:.3f} / {five:.3f}")
    print(", ".join(told), flush=True)


def learn(look, data, texts, vectors, asked, request, dice):
    """The pairs of a request, the right tool first, and their cosines by temperature; `None` if nothing near is wrong."""
    near = (vectors @ asked).topk(2 * TOP).indices
    near = torch.tensor([at for at in near.tolist() if not data.is_held(at)])
    wrong = [at for at, is_wrong in zip(near.tolist(), data.wrong(request, near, vectors).tolist()) if is_wrong]
    if len(wrong) < 2:
        return None
    wrong = wrong[:TOP]
    group = [dice.choice(request[0]), *dice.sample(wrong, min(WRONG_A_REQUEST, len(wrong)))]
    return [(request[2], texts[at]) for at in group], vectors[group] @ asked / TEMPERATURE


def train(look, data, texts, vectors, asked, sets, minutes):
    pool = [at for at, it in enumerate(data.requests) if it[0] and (it[1] in "sitx" or it[1] == "a" and at % 3 == 0)]
    fresh = [it for name, it in look.named_parameters() if not name.startswith("encoder.")]
    old = [it for name, it in look.named_parameters() if name.startswith("encoder.") and it.requires_grad]
    learner = torch.optim.AdamW([{"params": old}, {"params": fresh}], weight_decay=0.01, betas=(0.9, 0.98))
    dice, step = random.Random(3), 0
    began = judged = time.time()
    while (done := (time.time() - began) / (60 * minutes)) < 1:
        for group, times in zip(learner.param_groups, (1, FRESH_RATE)):
            group["lr"] = RATE * times * min(1, (step + 1) / WARM, max(0.03, (1 - done) / 0.8))
        chosen = dice.sample(pool, REQUESTS_A_STEP)
        groups = [learn(look, data, texts, vectors, asked[at], data.requests[at], dice) for at in chosen]
        groups = [it for it in groups if it]
        scores = look([pair for pairs, _ in groups for pair in pairs]).split([len(pairs) for pairs, _ in groups])
        loss = -torch.stack([torch.log_softmax(it + near, 0)[0] for it, (_, near) in zip(scores, groups)]).mean()
        learner.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(old + fresh, 1.0)
        learner.step()
        step += 1
        if time.time() - judged > JUDGE_EVERY_S:
            print("step", step, flush=True)
            for name, rows in sets:
                judge(name, rows, look)
            judged = time.time()
    print("step", step, flush=True)
    for name, rows in sets:
        judge(name, rows, look)


def main():
    arguments = argparse.ArgumentParser(usage=__doc__)
    arguments.add_argument("encoder", type=pathlib.Path)
    arguments.add_argument("unseen", type=pathlib.Path)
    arguments.add_argument("--shared", default=ROOT.parent / "shared")
    arguments.add_argument("--layers", type=int, default=6)
    arguments.add_argument("--minutes", type=float, default=36)
    arguments = arguments.parse_args()
    torch.manual_seed(1)
    pieces = Pieces(arguments.encoder / "vocab.txt")
    data = Data(arguments.shared, pieces)
    encoder = read_encoder(arguments.encoder, len(pieces.ids))
    texts = [(it[0][: PIECES_ENCODED - 1] + [pieces.end])[:PIECES_ENCODED] if len(it[0]) > PIECES_ENCODED else it[0] for it in data.views]
    vectors = embed_texts(encoder, texts)
    asked = embed_texts(encoder, [it[2] for it in data.requests])
    sets = [
        ("held-out servers", held_set(data, texts, vectors, encoder)),
        ("unseen", unseen_set(data, texts, encoder, pieces, arguments)),
    ]
    look = SecondLook(read_encoder(arguments.encoder, len(pieces.ids)), arguments.layers)
    train(look, data, texts, vectors, asked, sets, arguments.minutes)


if __name__ == "__main__":
    main()

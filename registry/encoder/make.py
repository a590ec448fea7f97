#!/usr/bin/env python3
"""Makes the files of this folder from the trained all-MiniLM-L6-v2. Needed only to check or replace them.

usage: make.py MODEL_FOLDER OUT_FOLDER [SHARED_FOLDER]

MODEL_FOLDER has the model as sentence-transformers publishes it (`model.safetensors`, `vocab.txt`); README.md says where
from. `crates/encoder/training/network.py` describes the files. Needs numpy and safetensors; ten minutes.

Rounding follows GPTQ (arXiv 2210.17323): the weights of a matrix are rounded one input after the other, and the error of
each is spread over the inputs that come later, as far as they replace it in the rows that the matrix sees. These rows are
those of 2,000 requests and 1,000 tools of the training data (tools from SHARED_FOLDER, `../shared`), as the rounded layers
before give them. Before that a matrix is changed so that it gives from these rows about what the exact one gives from the
exact rows, and its biases so that it does so in the mean.
"""
import pathlib, random, sys
import numpy as np
from safetensors.numpy import load_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "crates" / "encoder" / "training"))
from documents import Pieces, read_tools, split, stands_alone, views
from network import GROUP, HEADS, LAYERS, PLACES, WIDTH, pack, read_words, run

# A weight is `(number * step + 16) >> 5`, at most 63, so that no kernel saturates.
STEP_MAX, STEP_UNIT = 126, 32
# The largest step of an output before errors are spread, which may make it larger.
STEP_AT_FIRST = 110
DAMPING = 0.01
REQUESTS, TOOLS, PIECES = 2_000, 1_000, 64


def best_scales(groups):
    """The scale of each group, negative where that fits better, that rounds it to -16..15 with the least squares."""
    most = np.maximum(np.abs(groups).max(axis=1), 1e-9)
    scales, least = most / 15, np.full(len(groups), np.inf)
    for parts in np.linspace(13, 17.5, 19):
        for tried in (most / parts, -most / parts):
            errors = np.square(to_numbers(groups, tried) * tried[:, None] - groups).sum(axis=1)
            scales, least = np.where(errors < least, tried, scales), np.minimum(errors, least)
    return scales


def to_numbers(groups, scales):
    return np.clip(np.round(groups / scales[:, None]), -16, 15)


def steps_of(scales, row_scales, most):
    steps = np.clip(np.round(scales / row_scales), -most, most)
    return np.where(steps == 0, 1, steps)


class Layers:
    """Rounds each matrix when it is first multiplied with.

    It multiplies twice as many rows as there are: first those that the rounded layers before give with the rounded
    matrix, then the exact ones with the exact matrix.
    """

    def __init__(self):
        self.groups, self.steps, self.numbers = [], [], []

    def times(self, x, weight, bias):
        half = len(x) // 2
        exact = x[half:] @ weight.T
        rounded, scales = self.round(weight, x[:half], x[half:])
        ours = x[:half] @ rounded.T
        new_bias = bias + (exact.mean(axis=0) - ours.mean(axis=0))
        self.numbers.append((scales, new_bias))
        return np.concatenate([ours + new_bias, exact + bias]).astype(np.float32)

    def round(self, weight, x, exact_x):
        out, into = weight.shape
        products = (x.T @ x).astype(np.float64) / len(x)
        damped = products + np.eye(into) * DAMPING * np.diag(products).mean()
        inverse = np.linalg.inv(damped)
        # The error of an input as the later ones bear it.
        spread = np.linalg.cholesky(inverse).T
        mixed = (exact_x.T @ x).astype(np.float64) / len(x)
        weight = weight + weight @ (mixed - products) @ inverse
        first = np.abs(best_scales(weight.reshape(-1, GROUP))).reshape(out, -1).max(axis=1)
        row_scales = np.float32(first * STEP_UNIT / STEP_AT_FIRST).astype(np.float64)
        numbers, steps = np.zeros((out, into), int), np.zeros((out, into // GROUP), int)
        for begin in range(0, into, GROUP):
            end = begin + GROUP
            scales = best_scales(weight[:, begin:end]) * STEP_UNIT
            step = steps_of(scales, row_scales, STEP_MAX)
            steps[:, begin // GROUP] = step
            errors = np.zeros((out, GROUP))
            for at in range(begin, end):
                column = to_numbers(weight[:, at : at + 1], step * row_scales / STEP_UNIT)[:, 0]
                numbers[:, at] = column
                rounded = ((column * step).astype(int) + STEP_UNIT // 2 >> 5) * row_scales
                error = (weight[:, at] - rounded) / spread[at, at]
                weight[:, at] = rounded
                weight[:, at + 1 : end] -= np.outer(error, spread[at, at + 1 : end])
                errors[:, at - begin] = error
            weight[:, end:] -= errors @ spread[begin:end, end:]
        self.groups.append(pack(numbers))
        self.steps.append(steps.astype(np.int8).tobytes())
        return weight.astype(np.float32), row_scales.astype("<f4")

    def file(self, first, layers):
        numbers, rounded = list(first), iter(self.numbers)
        for layer in layers:
            for _, _, norm in layer:
                numbers.extend([*next(rounded), *(norm or ())])
        numbers = [np.ascontiguousarray(it, "<f4").tobytes() for it in numbers]
        return b"".join(self.groups + self.steps + numbers)


def read_model(weights):
    """The first norm and the layers, as `network.read_layers` gives them."""

    def norm(name):
        return weights[f"{name}.weight"], weights[f"{name}.bias"]

    def part(name, scale=1.0):
        return weights[f"{name}.weight"] * np.float32(scale), weights[f"{name}.bias"] * np.float32(scale)

    layers = []
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        own = f"{layer}.attention.self"
        attention = [part(f"{own}.query", (WIDTH // HEADS) ** -0.5), part(f"{own}.key"), part(f"{own}.value")]
        matrices = [
            [np.concatenate(both) for both in zip(*attention)],
            part(f"{layer}.attention.output.dense"),
            part(f"{layer}.intermediate.dense"),
            part(f"{layer}.output.dense"),
        ]
        norms = [None, norm(f"{layer}.attention.output.LayerNorm"), None, norm(f"{layer}.output.LayerNorm")]
        layers.append([(weight, bias, behind) for (weight, bias), behind in zip(matrices, norms)])
    return norm("embeddings.LayerNorm"), layers


def words(rows, places):
    groups = rows.reshape(-1, GROUP)
    scales = best_scales(groups).reshape(len(rows), -1)
    row_scales = (np.abs(scales).max(axis=1) / 127).astype("<f4")
    steps = steps_of(scales, row_scales[:, None], 127)
    numbers = to_numbers(groups, (steps * row_scales[:, None]).reshape(-1))
    place_scales = (np.abs(places).max(axis=1) / 127).astype("<f4")
    small = np.round(places / place_scales[:, None]).astype(np.int8)
    parts = [pack(numbers.astype(int)), steps.astype(np.int8).tobytes(), row_scales.tobytes()]
    return b"".join([*parts, small.tobytes(), place_scales.tobytes()])


def can_occur(piece):
    """Whether a text can have this piece."""
    if piece in ("[CLS]", "[SEP]", "[UNK]"):
        return True
    rest = piece[2:] if piece.startswith("##") and len(piece) > 2 else piece
    return split(rest) == [rest] and (rest == piece or not stands_alone(rest[0]))


def texts(shared):
    lines = [line for path in sorted((ROOT / "crates/encoder/training/requests").glob("*.tsv")) for line in path.open()]
    rows = [line.rstrip("\n").split("\t") for line in lines]
    asked = [row[2] for row in rows if len(row) == 3 and len(row[0]) == 1]
    of_tools = [views(server, tool)[0] for (server, _), tool in sorted(read_tools(shared).items())]
    dice = random.Random(1)
    return dice.sample(asked, REQUESTS) + dice.sample(of_tools, TOOLS)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    model, out, shared = (pathlib.Path(it) for it in [*sys.argv[1:], ROOT.parent / "shared"][:3])
    weights = load_file(model / "model.safetensors")
    weights = {name.removeprefix("bert."): array.astype(np.float32) for name, array in weights.items()}
    vocabulary = (model / "vocab.txt").read_text(encoding="utf8").rstrip("\n").split("\n")
    kept = [number for number, piece in enumerate(vocabulary) if can_occur(piece)]
    places = weights["embeddings.position_embeddings.weight"][:PLACES]
    places = places + weights["embeddings.token_type_embeddings.weight"][0]
    of_words = words(weights["embeddings.word_embeddings.weight"][kept], places)
    (out / "words.bin").write_bytes(of_words)
    (out / "vocab.txt").write_text("".join(f"{vocabulary[it]}\n" for it in kept), encoding="utf8")
    pieces = Pieces(out / "vocab.txt")
    ids = [pieces.of(text, PIECES) for text in texts(shared)]
    lengths = [len(it) for it in ids]
    first, layers = read_model(weights)
    rounded_words, rounded_places = read_words(of_words)
    exact_words = weights["embeddings.word_embeddings.weight"][kept]
    pairs = ((rounded_words, rounded_places), (exact_words, places))
    rows = np.concatenate([rows[it] + at[: len(it)] for rows, at in pairs for it in ids])
    rounded = Layers()
    vectors = run(rows, lengths * 2, first, layers, rounded.times)
    (out / "layers.bin").write_bytes(rounded.file(first, layers))
    cosines = (vectors[: len(ids)] * vectors[len(ids) :]).sum(axis=1)
    print(f"vectors of {len(ids)} texts, rounded and exact: cosine {cosines.mean():.4f}, at least {cosines.min():.4f}")


main()

#!/usr/bin/env python3
"""Makes the files of this folder from all-MiniLM-L6-v2. Needed only to check or replace them.

usage: make.py MODEL_FOLDER OUT_FOLDER

MODEL_FOLDER holds the model as sentence-transformers publishes it (`model.safetensors`,
`vocab.txt`); README.md says where a package registry has it. Needs numpy and safetensors.

 layers.bin      the six layers, first all matrices as i8, then everything else as f32; little-endian.
                 A layer's matrices: query, key and value as one (1152 x 384), output (384 x 384),
                 up (1536 x 384), down (384 x 1536); a row an output, its numbers rounded to -63..=63
                 by a scale of its own, so that no kernel saturates. The f32: gain and shift of the
                 norm before the first layer; then a layer's scales and biases of the four matrices in
                 their order, each followed by gain and shift of the norm behind it where there is one
                 (output, down). The attention's scale is in the query's rows.
 words.bin       the rows of the 30,522 words: 384 x i8 and one f32 scale each, then 256 rows of
                 places as 384 x f32 (the segment's row added in); all little-endian
 vocab.txt       as published
"""
import pathlib, shutil, sys
import numpy as np
from safetensors.numpy import load_file

LAYERS, HEADS, WIDTH, PLACES = 6, 12, 384, 256
SMALL_MAX = 63


def layers(weights):
    matrices, numbers = [], []

    def norm(name):
        numbers.extend(weights[f"{name}.{part}"] for part in ("weight", "bias"))

    def linear(weight, bias):
        scales = np.maximum(np.abs(weight).max(axis=1), 1e-9) / SMALL_MAX
        matrices.append(np.round(weight / scales[:, None]).astype(np.int8))
        numbers.extend([scales, bias])

    def part(name, scale=1.0):
        return weights[f"{name}.weight"] * np.float32(scale), weights[f"{name}.bias"] * np.float32(scale)

    norm("embeddings.LayerNorm")
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        attention = f"{layer}.attention.self"
        parts = [part(f"{attention}.query", (WIDTH // HEADS) ** -0.5), part(f"{attention}.key"), part(f"{attention}.value")]
        linear(*(np.concatenate(both) for both in zip(*parts)))
        linear(*part(f"{layer}.attention.output.dense"))
        norm(f"{layer}.attention.output.LayerNorm")
        linear(*part(f"{layer}.intermediate.dense"))
        linear(*part(f"{layer}.output.dense"))
        norm(f"{layer}.output.LayerNorm")
    numbers = [np.ascontiguousarray(it, "<f4").tobytes() for it in numbers]
    return b"".join([it.tobytes() for it in matrices] + numbers)


def words(weights):
    rows = weights["embeddings.word_embeddings.weight"]
    scales = np.maximum(np.abs(rows).max(axis=1), 1e-9) / 127
    small = np.round(rows / scales[:, None]).astype(np.int8)
    places = weights["embeddings.position_embeddings.weight"][:PLACES]
    places = places + weights["embeddings.token_type_embeddings.weight"][0]
    return small.tobytes() + scales.astype("<f4").tobytes() + places.astype("<f4").tobytes()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    model, out = map(pathlib.Path, sys.argv[1:])
    weights = load_file(model / "model.safetensors")
    weights = {name.removeprefix("bert."): array.astype(np.float32) for name, array in weights.items()}
    (out / "layers.bin").write_bytes(layers(weights))
    (out / "words.bin").write_bytes(words(weights))
    shutil.copyfile(model / "vocab.txt", out / "vocab.txt")


main()

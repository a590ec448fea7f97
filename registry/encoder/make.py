#!/usr/bin/env python3
"""Makes the files of this folder from all-MiniLM-L6-v2. Needed only to check or replace them.

usage: make.py MODEL_FOLDER OUT_FOLDER

MODEL_FOLDER holds the model as sentence-transformers publishes it (`model.safetensors`,
`vocab.txt`); README.md says where a package registry has it. Needs numpy, onnx,
onnxruntime, safetensors and sympy.

 layers.onnx     the six layers: `rows` (n x 384, the words' rows plus their places') to
                 `vector` (384, the mean over words, not normalised); weights in 7 bits, one
                 scale a column, so that no kernel saturates
 words.bin       the rows of the 30,522 words: 384 x i8 and one f32 scale each, then 256 rows of
                 places as 384 x f32 (the segment's row added in); all little-endian
 vocab.txt       as published
"""
import pathlib, shutil, sys, tempfile
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.numpy import load_file

LAYERS, HEADS, WIDTH, PLACES = 6, 12, 384, 256


class Graph:
    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def op(self, kind, *inputs, **attributes):
        out = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=out, **attributes))
        return out


def layers(weights):
    g = Graph()

    def norm(x, name):
        gain, shift = (g.constant(f"{name}.{p}", weights[f"{name}.{p}"]) for p in ("weight", "bias"))
        return g.op("LayerNormalization", x, gain, shift, axis=-1, epsilon=1e-12)

    def linear(x, name, scale=1.0):
        weight = g.constant(f"{name}.weight", weights[f"{name}.weight"].T * np.float32(scale))
        bias = g.constant(f"{name}.bias", weights[f"{name}.bias"] * np.float32(scale))
        return g.op("Add", g.op("MatMul", x, weight), bias)

    by_head = g.constant("by_head", np.array([-1, HEADS, WIDTH // HEADS], np.int64))
    flat = g.constant("flat", np.array([-1, WIDTH], np.int64))
    x = norm("rows", "embeddings.LayerNorm")
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"

        def heads(part, perm, scale=1.0):
            y = linear(x, f"{layer}.attention.self.{part}", scale)
            return g.op("Transpose", g.op("Reshape", y, by_head), perm=perm)

        query = heads("query", [1, 0, 2], (WIDTH // HEADS) ** -0.5)
        key, value = heads("key", [1, 2, 0]), heads("value", [1, 0, 2])
        seen = g.op("MatMul", g.op("Softmax", g.op("MatMul", query, key), axis=-1), value)
        seen = g.op("Reshape", g.op("Transpose", seen, perm=[1, 0, 2]), flat)
        seen = linear(seen, f"{layer}.attention.output.dense")
        x = norm(g.op("Add", seen, x), f"{layer}.attention.output.LayerNorm")
        y = g.op("Gelu", linear(x, f"{layer}.intermediate.dense"))
        y = linear(y, f"{layer}.output.dense")
        x = norm(g.op("Add", y, x), f"{layer}.output.LayerNorm")
    axis = g.constant("axis", np.array([0], np.int64))
    g.nodes.append(helper.make_node("ReduceMean", [x, axis], ["vector"], keepdims=0))
    graph = helper.make_graph(
        g.nodes,
        "all-MiniLM-L6-v2",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["words", WIDTH])],
        [helper.make_tensor_value_info("vector", TensorProto.FLOAT, [WIDTH])],
        g.constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


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
    with tempfile.TemporaryDirectory() as folder:
        full = pathlib.Path(folder) / "full.onnx"
        onnx.save(layers(weights), full)
        quantize_dynamic(
            full, out / "layers.onnx", weight_type=QuantType.QInt8, per_channel=True,
            reduce_range=True, op_types_to_quantize=["MatMul"], extra_options={"MatMulConstBOnly": True},
        )
    (out / "words.bin").write_bytes(words(weights))
    shutil.copyfile(model / "vocab.txt", out / "vocab.txt")


main()

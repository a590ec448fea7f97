"""The network in numpy, and the files in `registry/encoder` that hold its weights.

Weights are rounded to 5 bits (-16 to 15), in groups of 32 neighbours with a step of their own. A group has 20 bytes,
and each number has 16 added. The lower 4 bits of number `k` are in the low half of byte `k`, those of number `k + 16` in
the high half. The fifth bit of number `k` is bit `k / 4` of byte `16 + k % 4`. All files are little-endian.

 layers.bin      the groups of all matrices, a row an output; the steps of all groups as i8; then f32: gain and
                 shift of the norm before the first layer, and for each layer the scales (one for each output) and
                 biases of the four matrices in their order, each followed by gain and shift of the norm behind it
                 where there is one (output, down). A weight is `(number * step + 16) >> 5` times the scale of its
                 output, so the program multiplies integers of 7 bits. A layer's matrices: query, key and value as
                 one (1152 x 384), output (384 x 384), up (1536 x 384), down (384 x 1536). The attention's scale is
                 in the query's rows.
 words.bin       the groups of a row of 384 for each line of `vocab.txt`; their steps as i8; a scale for each row as
                 f32; 256 rows of positions as i8, with the segment's row added in; their scales as f32. A number is
                 `number * step * scale`, that of a position `number * scale`.
 vocab.txt       the word pieces of the model that a text can have, a line each
"""
import numpy as np

LAYERS, HEADS, WIDTH, PLACES = 6, 12, 384, 256
SHAPES = ((3 * WIDTH, WIDTH), (WIDTH, WIDTH), (4 * WIDTH, WIDTH), (WIDTH, 4 * WIDTH))
HAS_NORM = (False, True, False, True)
GROUP = 32
HALF = GROUP // 2
BYTES = GROUP * 5 // 8


def pack(numbers):
    """Numbers from -16 to 15 as bytes."""
    numbers = (numbers.reshape(-1, GROUP) + 16).astype(np.uint8)
    low = numbers[:, :HALF] & 15 | numbers[:, HALF:] << 4
    high = np.packbits((numbers >> 4).reshape(-1, 8, 4).transpose(0, 2, 1), axis=2, bitorder="little")
    return np.concatenate([low, high.reshape(-1, 4)], axis=1).tobytes()


def unpack(data):
    data = data.reshape(-1, BYTES)
    low = np.concatenate([data[:, :HALF] & 15, data[:, :HALF] >> 4], axis=1).astype(np.int32)
    high = np.unpackbits(data[:, HALF:, None], axis=2, bitorder="little").transpose(0, 2, 1).reshape(-1, GROUP)
    return low + 16 * high.astype(np.int32) - 16


class Reader:
    def __init__(self, data):
        self.data = data

    def take(self, kind, count):
        size = count * np.dtype(kind).itemsize
        numbers, self.data = np.frombuffer(self.data[:size], kind), self.data[size:]
        return numbers


def read_words(data):
    """The rows of words and those of positions."""
    row = WIDTH // GROUP * (BYTES + 1) + 4
    count = (len(data) - PLACES * (WIDTH + 4)) // row
    file = Reader(data)
    numbers = unpack(file.take(np.uint8, count * WIDTH // GROUP * BYTES))
    steps = file.take(np.int8, count * WIDTH // GROUP).astype(np.float32)
    words = (numbers * steps[:, None]).reshape(count, WIDTH) * file.take("<f4", count)[:, None]
    places = file.take(np.int8, PLACES * WIDTH).reshape(PLACES, WIDTH)
    return words.astype(np.float32), places * file.take("<f4", PLACES)[:, None]


def read_layers(data):
    """The first norm, and of each layer its four matrices with biases and the norms behind them (or None)."""
    file = Reader(data)
    count = LAYERS * sum(out * into for out, into in SHAPES)
    numbers = unpack(file.take(np.uint8, count // GROUP * BYTES))
    steps = file.take(np.int8, count // GROUP).astype(np.int32)
    small = (numbers * steps[:, None] + 16 >> 5).reshape(-1)
    first, layers = (file.take("<f4", WIDTH), file.take("<f4", WIDTH)), []
    for _ in range(LAYERS):
        layer = []
        for (out, into), has_norm in zip(SHAPES, HAS_NORM):
            scales, biases = file.take("<f4", out), file.take("<f4", out)
            weight, small = small[: out * into].reshape(out, into) * scales[:, None], small[out * into :]
            norm_behind = (file.take("<f4", WIDTH), file.take("<f4", WIDTH)) if has_norm else None
            layer.append((weight.astype(np.float32), biases, norm_behind))
        layers.append(layer)
    return first, layers


def norm(x, gain, shift):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * gain + shift


def gelu(x):
    """By the error function (Abramowitz and Stegun, 7.1.26: exact to 1.5e-7)."""
    at = np.abs(x) / np.float32(2**0.5)
    t = 1 / (1 + np.float32(0.3275911) * at)
    series = np.polyval(np.float32([1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0]), t)
    return x * np.float32(0.5) * (1 + np.sign(x) * (1 - series * np.exp(-at * at)))


def attend(x, lengths):
    """The attention of each row over the rows of its text."""
    seen, begin = np.empty((len(x), WIDTH), np.float32), 0
    for length in lengths:
        text = x[begin : begin + length].reshape(length, 3, HEADS, WIDTH // HEADS)
        query, key, value = text.transpose(1, 2, 0, 3)
        shares = query @ key.transpose(0, 2, 1)
        shares = np.exp(shares - shares.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        seen[begin : begin + length] = (shares @ value).transpose(1, 0, 2).reshape(length, WIDTH)
        begin += length
    return seen


def run(rows, lengths, first, layers, times=lambda x, weight, bias: x @ weight.T + bias):
    """The mean of each text's rows after the last layer, at length one. `times` multiplies with a matrix."""
    x = norm(rows.astype(np.float32), *first)
    for attention, output, up, down in layers:
        seen = attend(times(x, *attention[:2]), lengths)
        x = norm(x + times(seen, *output[:2]), *output[2])
        x = norm(x + times(gelu(times(x, *up[:2])), *down[:2]), *down[2])
    ends = np.cumsum(lengths)
    means = np.stack([x[end - length : end].mean(0) for end, length in zip(ends, lengths)])
    return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)

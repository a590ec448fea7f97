"""MiniLM in torch, without what we do not need: texts of like length together, the mean of all rows."""
import pathlib

import numpy as np
import torch
from safetensors.numpy import load_file
from torch import nn
from torch.nn import functional as F

LAYERS, HEADS, WIDTH, PLACES = 6, 12, 384, 256
PIECES_A_BATCH = 8_192


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.seen = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm_seen, self.norm = (nn.LayerNorm(WIDTH, eps=1e-12) for _ in range(2))

    def forward(self, x, hidden):
        count, length, _ = x.shape

        def heads(linear):
            return linear(x).view(count, length, HEADS, WIDTH // HEADS).transpose(1, 2)

        scores = heads(self.query) @ heads(self.key).transpose(2, 3) * (WIDTH // HEADS) ** -0.5
        seen = torch.softmax(scores + hidden, dim=-1) @ heads(self.value)
        seen = self.seen(seen.transpose(1, 2).reshape(count, length, WIDTH))
        x = self.norm_seen(x + seen)
        return self.norm(x + self.narrow(F.gelu(self.wide(x))))


NAMES = {
    "query": "attention.self.query", "key": "attention.self.key", "value": "attention.self.value",
    "seen": "attention.output.dense", "norm_seen": "attention.output.LayerNorm",
    "wide": "intermediate.dense", "narrow": "output.dense", "norm": "output.LayerNorm",
}


class Encoder(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words, self.places = nn.Embedding(words, WIDTH), nn.Embedding(PLACES, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def rows(self, ids, lengths):
        held = torch.arange(ids.shape[1])[None, :] < lengths[:, None]
        hidden = torch.zeros(ids.shape).masked_fill(~held, -1e4)[:, None, None, :]
        x = self.norm(self.words(ids) + self.places.weight[: ids.shape[1]])
        for layer in self.layers:
            x = layer(x, hidden)
        held = held[:, :, None].to(x.dtype)
        return (x * held).sum(1) / lengths[:, None]

    def forward(self, texts):
        """Vectors of length one for lists of ids, in their order."""
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        parts, batch = [], []
        for at in [*order, None]:
            full = batch and (at is None or (len(batch) + 1) * len(texts[at]) > PIECES_A_BATCH)
            if full:
                longest = len(texts[batch[-1]])
                ids = torch.tensor([texts[it] + [0] * (longest - len(texts[it])) for it in batch])
                lengths = torch.tensor([len(texts[it]) for it in batch])
                parts.append(self.rows(ids, lengths).float())
                batch = []
            batch.append(at)
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return F.normalize(torch.cat(parts)[back], dim=1)

    def read(self, folder):
        weights = {
            name.removeprefix("bert."): torch.tensor(array.astype(np.float32))
            for name, array in load_file(pathlib.Path(folder, "model.safetensors")).items()
        }
        places = weights["embeddings.position_embeddings.weight"][:PLACES]
        own = {
            "words.weight": weights["embeddings.word_embeddings.weight"],
            "places.weight": places + weights["embeddings.token_type_embeddings.weight"][0],
        }
        for part in ("weight", "bias"):
            own[f"norm.{part}"] = weights[f"embeddings.LayerNorm.{part}"]
            for number in range(LAYERS):
                for ours, theirs in NAMES.items():
                    own[f"layers.{number}.{ours}.{part}"] = weights[f"encoder.layer.{number}.{theirs}.{part}"]
        self.load_state_dict(own)
        return self

    def published(self):
        """The weights under the names that BERT has for them; the segment is in the places."""
        own = {name: value.detach().numpy() for name, value in self.state_dict().items()}
        weights = {
            "embeddings.word_embeddings.weight": own["words.weight"],
            "embeddings.position_embeddings.weight": own["places.weight"],
            "embeddings.token_type_embeddings.weight": np.zeros((2, WIDTH), np.float32),
        }
        for part in ("weight", "bias"):
            weights[f"embeddings.LayerNorm.{part}"] = own[f"norm.{part}"]
            for number in range(LAYERS):
                for ours, theirs in NAMES.items():
                    weights[f"encoder.layer.{number}.{theirs}.{part}"] = own[f"layers.{number}.{ours}.{part}"]
        return {name: np.ascontiguousarray(array) for name, array in weights.items()}


def embed_texts(encoder, texts):
    """Vectors of texts' ids, nothing learned."""
    encoder.eval()
    with torch.no_grad():
        parts = [encoder(texts[at : at + 512]) for at in range(0, len(texts), 512)]
    return torch.cat(parts)

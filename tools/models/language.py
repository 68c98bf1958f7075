"""Networks of words and sequences, in PyTorch."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Heads(nn.Module):
    """Attention of several heads; `causal`: no place sees those behind it."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        batch, length, width = x.shape
        split = (batch, length, self.heads, width // self.heads)
        q, k, v = (f(x).view(split).transpose(1, 2) for f in (self.query, self.key, self.value))
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)
        if self.causal:
            seen = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
            scores = scores.masked_fill(~seen, float("-inf"))
        if mask is not None:
            scores = scores + (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        together = (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, length, width)
        result: Tensor = self.out(together)
        return result


class Block(nn.Module):
    """Attention and two layers, each around a residual; normalised behind it (BERT) or before it (GPT)."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads = Heads(width, heads, causal)
        self.causal = causal
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        around = nn.GELU(approximate="tanh" if causal else "none")
        self.layers = nn.Sequential(nn.Linear(width, 4 * width), around, nn.Linear(4 * width, width))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        first, second = self.norms
        if self.causal:
            x = x + self.heads(first(x), mask)
            result: Tensor = x + self.layers(second(x))
            return result
        x = first(x + self.heads(x, mask))
        behind: Tensor = second(x + self.layers(x))
        return behind


class Bert(nn.Module):
    """BERT-base: the last hidden states and the pooled first one."""

    def __init__(self, width: int = 768, heads: int = 12, depth: int = 12, words: int = 30522) -> None:
        super().__init__()
        self.words, self.kinds = nn.Embedding(words, width), nn.Embedding(2, width)
        self.places = nn.Embedding(512, width)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, heads, causal=False) for _ in range(depth))
        self.pool = nn.Linear(width, width)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        places = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        x = self.norm(self.words(input_ids) + self.kinds(token_type_ids) + self.places(places))
        for block in self.blocks:
            x = block(x, attention_mask)
        return x, torch.tanh(self.pool(x[:, 0]))


class Gpt(nn.Module):
    """GPT-2 small: the logits of the next word at each place."""

    def __init__(self, width: int = 768, heads: int = 12, depth: int = 12, words: int = 50257) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(1024, width)
        self.blocks = nn.ModuleList(Block(width, heads, causal=True) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, input_ids: Tensor) -> Tensor:
        places = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        x = self.words(input_ids) + self.places(places)
        for block in self.blocks:
            x = block(x, None)
        result: Tensor = self.norm(x) @ self.words.weight.T
        return result


class Lstm(nn.Module):
    """Two layers of 256 over a sequence, and the output of the last step."""

    def __init__(self, inputs: int = 64, width: int = 256, classes: int = 10) -> None:
        super().__init__()
        self.layers = nn.LSTM(inputs, width, num_layers=2, batch_first=True)
        self.last = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        steps, (hidden, _) = self.layers(x)
        return steps, self.last(hidden[-1])

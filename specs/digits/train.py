"""Train a network with one hidden layer on 8 × 8 images of handwritten digits, with nothing but numpy."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

import monkey

EPOCHS, BATCH, MOMENTUM, CLASSES = 40, 32, 0.9, 10
#: The dataset, where the job finds it; by hand, what lies beside this file.
DATA = os.environ.get("MONKEY_DATASET_DIGITS") or Path(__file__).parent / "data" / "digits.csv"


def load() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return images (0 to 1) and labels of each part. The split is fixed: only training depends on the job's seed."""
    table = np.loadtxt(DATA, delimiter=",", dtype=np.float32)
    order = np.random.default_rng(0).permutation(len(table))
    parts = zip(("train", "val", "test"), np.split(table[order], [1078, 1437]), strict=True)
    return {name: (part[:, :-1] / 16, part[:, -1].astype(int)) for name, part in parts}


class Network:
    """Two dense layers with a ReLU between them, trained by gradient descent with momentum."""

    def __init__(self, inputs: int, hidden: int, rng: np.random.Generator) -> None:
        self.weights = {
            "w1": rng.normal(0, np.sqrt(2 / inputs), (inputs, hidden)).astype(np.float32),
            "b1": np.zeros(hidden, np.float32),
            "w2": rng.normal(0, np.sqrt(2 / hidden), (hidden, CLASSES)).astype(np.float32),
            "b2": np.zeros(CLASSES, np.float32),
        }
        self.velocity = {name: np.zeros_like(w) for name, w in self.weights.items()}

    def forward(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the hidden layer and the probabilities of the classes."""
        w = self.weights
        hidden = np.maximum(x @ w["w1"] + w["b1"], 0)
        logits = hidden @ w["w2"] + w["b2"]
        exp = np.exp(logits - logits.max(axis=1, keepdims=True))
        return hidden, exp / exp.sum(axis=1, keepdims=True)

    def step(self, x: np.ndarray, y: np.ndarray, lr: float) -> float:
        """Take one step on a batch and return its mean cross-entropy."""
        hidden, p = self.forward(x)
        loss = float(-np.log(p[np.arange(len(y)), y] + 1e-12).mean())
        p[np.arange(len(y)), y] -= 1
        p /= len(y)
        back = (p @ self.weights["w2"].T) * (hidden > 0)
        gradient = {"w1": x.T @ back, "b1": back.sum(0), "w2": hidden.T @ p, "b2": p.sum(0)}
        for name, g in gradient.items():
            self.velocity[name] = MOMENTUM * self.velocity[name] - lr * g
            self.weights[name] += self.velocity[name]
        return loss

    def accuracy(self, x: np.ndarray, y: np.ndarray) -> float:
        """Return the share of images that are recognised."""
        return float((self.forward(x)[1].argmax(axis=1) == y).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--hidden", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    data = load()
    x, y = data["train"]
    rng = np.random.default_rng(args.seed)
    network = Network(x.shape[1], args.hidden, rng)
    for epoch in range(1, EPOCHS + 1):
        batches = np.array_split(rng.permutation(len(x)), len(x) // BATCH)
        loss = np.mean([network.step(x[batch], y[batch], args.lr) for batch in batches])
        accuracy = network.accuracy(*data["val"])
        monkey.log({"loss": loss, "val_accuracy": accuracy}, step=epoch)
        print(f"epoch {epoch:3}: loss {loss:.4f}, validation accuracy {accuracy:.4f}", flush=True)

    accuracy = network.accuracy(*data["test"])
    monkey.log("test_accuracy", accuracy)
    np.savez(monkey.output_dir() / "model.npz", **network.weights)
    print(f"test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()

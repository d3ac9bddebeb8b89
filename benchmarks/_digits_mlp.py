"""One job of `compare`: a network with one hidden layer on the digits of specs/digits, with nothing but numpy."""

from __future__ import annotations

import sys

import numpy as np

import monkey

EPOCHS, BATCH, CLASSES = 25, 32, 10


def main() -> None:
    """Train with MONKEY_PARAMS, and log the accuracy on the test part."""
    p = monkey.params()
    table = np.loadtxt(sys.argv[1], delimiter=",", dtype=np.float32)
    order = np.random.default_rng(0).permutation(len(table))
    (x, y), _, (test_x, test_y) = (
        (part[:, :-1] / 16, part[:, -1].astype(int)) for part in np.split(table[order], [1078, 1437])
    )
    rng, hidden = np.random.default_rng(p["seed"]), p["hidden"]
    # Weights are drawn first, then the batches, from one stream: another width gives the batches other numbers.
    w = [
        rng.normal(0, np.sqrt(2 / x.shape[1]), (x.shape[1], hidden)).astype(np.float32),
        np.zeros(hidden, np.float32),
        rng.normal(0, np.sqrt(2 / hidden), (hidden, CLASSES)).astype(np.float32),
        np.zeros(CLASSES, np.float32),
    ]
    speed = [np.zeros_like(each) for each in w]
    for _ in range(EPOCHS):
        for batch in np.array_split(rng.permutation(len(x)), len(x) // BATCH):
            layer = np.maximum(x[batch] @ w[0] + w[1], 0)
            logits = layer @ w[2] + w[3]
            error = np.exp(logits - logits.max(axis=1, keepdims=True))
            error /= error.sum(axis=1, keepdims=True)
            error[np.arange(len(batch)), y[batch]] -= 1
            error /= len(batch)
            back = (error @ w[2].T) * (layer > 0)
            slopes = [x[batch].T @ back, back.sum(0), layer.T @ error, error.sum(0)]
            for at, slope in enumerate(slopes):
                decay = p["wd"] * w[at] if at in (0, 2) else 0
                speed[at] = p["momentum"] * speed[at] - p["lr"] * (slope + decay)
                w[at] += speed[at]
    found = (np.maximum(test_x @ w[0] + w[1], 0) @ w[2] + w[3]).argmax(axis=1)
    monkey.log("test_accuracy", float((found == test_y).mean()))


if __name__ == "__main__":
    main()

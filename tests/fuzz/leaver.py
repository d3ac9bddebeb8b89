# ruff: noqa: PTH101, PTH102, PTH103, PTH118, PTH123, PTH211
# A job needs nothing of ours.
"""A job that leaves hostile things in all its directories: leaver.py SEED COUNT PRECIOUS."""

import contextlib
import os
import random
import socket
import sys

seed, count, precious = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = random.Random(seed)
PLACES = [os.environ[f"MONKEY_{name}_DIR"] for name in ("OUTPUT", "CHECKPOINT", "METRICS")] + ["."]
NAMES = ["x", "0.jsonl", "1.jsonl", "log", "a.tmp", "é", "\x1b[2J", "\udcff", "a\nb", "-rf", "..x", "n" * 250, "²", " "]
LINES = [
    *("{", "[]", "null", '{"m":{"loss":NaN}}', '{"m":{"loss":1e999},"step":1}', '{"m":{"loss":' + "9" * 5000 + "}}"),
    *('{"m":{"loss":"x"},"step":"y"}', '{"m":' + '{"a":' * 2000 + "1" + "}" * 2001, '{"m":{"\\ud800":1}}', "\x1b[2J"),
    *('{"m":{"loss":1},"step":10e400,"t":-1}', '{"m":{"loss":1},"t":"now"}', "x" * 100_000, '{"m":{"a b=":1},"t":1}'),
]


def nest(path: str) -> None:
    """Nest directories in `path`, up to deeper than paths may be long."""
    os.makedirs(path, exist_ok=True)
    here = os.open(path, os.O_RDONLY)
    # Seldom the deepest: a disk that discards blocks at once takes milliseconds for each directory that goes.
    for _ in range(rng.choices([3, 300, 3000], [8, 3, 1])[0]):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def leave(path: str) -> None:
    """Leave one thing at `path`."""
    kind = rng.randrange(10)
    if os.path.lexists(path):
        return  # the other end of a pipe never comes
    if kind == 0:
        os.symlink(rng.choice([precious, precious + "/thesis.tex", "/etc/passwd", "..", "x", path, "/dev/zero"]), path)
    elif kind == 1:
        os.mkfifo(path)
    elif kind == 2:
        nest(path)
    elif kind == 3:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path)
    elif kind == 4:
        with open(path, "wb") as file:
            file.truncate(rng.choice([0, 1 << 20, 1 << 24]))
    elif kind == 5:
        os.mkdir(path, rng.choice([0, 0o111, 0o700]))
    elif kind == 6:
        os.link(sys.argv[0], path)
    elif kind == 7:
        with open(path, "w") as file:
            file.write("x")
        os.chmod(path, rng.choice([0, 0o4777, 0o222]))
    else:
        with open(path, "a", errors="surrogatepass") as file:
            for _ in range(rng.randrange(9)):
                file.write(rng.choice(LINES) + rng.choice(["\n", "\r", "", "\0"]))


for _ in range(count):
    with contextlib.suppress(OSError, UnicodeError):
        leave(os.path.join(rng.choice(PLACES), rng.choice(NAMES) + rng.choice(["", str(rng.randrange(99))])))
for _ in range(9):
    sys.stdout.buffer.write(rng.choice([b"\x1b]0;PWNED\x07", b"\x9b31m", b"\0", b"\r", b"x" * 9000, b"\n", b"\xff"]))
sys.exit(rng.choice([0, 0, 0, 3]))

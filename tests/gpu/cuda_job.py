"""A job that holds GPU memory by the driver's own library, and keeps a ledger: Python alone, no framework.

It allocates `--part` of the card's memory (more than 1: the driver must refuse), holds it for `--seconds`, and computes
meanwhile if it is `--busy`. It also is the stranger, whose process monkey did not start.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
import time

#: CUDA_ERROR_OUT_OF_MEMORY.
OUT_OF_MEMORY = 2


class Cuda:
    """The driver's library, with a context on the first GPU that CUDA_VISIBLE_DEVICES permits."""

    def __init__(self) -> None:
        """Open it. Exits where the driver refuses."""
        self._library = ctypes.CDLL("libcuda.so.1")
        self._context = ctypes.c_void_p()
        device = ctypes.c_int()
        self.call("cuInit", ctypes.c_uint(0))
        self.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(0))
        self.call("cuCtxCreate_v2", ctypes.byref(self._context), ctypes.c_uint(0), device)

    def call(self, name: str, *arguments: object, about: str = "") -> None:
        """Call a function; exits with the driver's own words where it fails."""
        code = getattr(self._library, name)(*arguments)
        if code:
            said = f"{name}: {self._explain('cuGetErrorName', code)} ({self._explain('cuGetErrorString', code)})"
            sys.exit(f"GPU memory: {about}: {said}" if code == OUT_OF_MEMORY else said)

    def _explain(self, name: str, code: int) -> str:
        text = ctypes.c_char_p()
        getattr(self._library, name)(ctypes.c_int(code), ctypes.byref(text))
        return (text.value or str(code).encode()).decode()

    def allocate(self, part: float) -> tuple[ctypes.c_ulonglong, int]:
        """Allocate a part of the whole memory; returns where it is, and its bytes."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        size = int(total.value * part) // 4096 * 4096
        pointer = ctypes.c_ulonglong()
        about = f"{size} bytes asked for, {free.value} of {total.value} free"
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size), about=about)
        return pointer, size

    def fill(self, pointer: ctypes.c_ulonglong, size: int) -> None:
        """Have the GPU write to all of the memory, and wait for it."""
        self.call("cuMemsetD32_v2", pointer, ctypes.c_uint(1), ctypes.c_size_t(size // 4))
        self.call("cuCtxSynchronize")

    def close(self) -> None:
        """Give back the memory and the context."""
        self.call("cuCtxDestroy_v2", self._context)


def note(asked: argparse.Namespace, what: str) -> None:
    """Append a line to the ledger in one write."""
    line = {"what": what, "kind": asked.kind, "job": f"{asked.kind}-{asked.number}", "id": os.environ.get("MONKEY_JOB")}
    line |= {"at": time.time(), "devices": os.environ.get("CUDA_VISIBLE_DEVICES")}
    fd = os.open(asked.ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, f"{json.dumps(line)}\n".encode())
    os.close(fd)


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("ledger")
    parser.add_argument("kind")
    parser.add_argument("number")
    parser.add_argument("--part", type=float, default=0.0, help="of the card's memory; 0: use no GPU")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--busy", action="store_true")
    asked = parser.parse_args()
    note(asked, "begin")
    try:
        if asked.part:
            use_gpu(asked)
    finally:
        note(asked, "end")


def use_gpu(asked: argparse.Namespace) -> None:
    """Hold memory of the GPU, and compute in it."""
    cuda = Cuda()
    pointer, size = cuda.allocate(asked.part)
    note(asked, "hold")
    print("holds", size, "bytes", flush=True)
    until = time.monotonic() + asked.seconds
    while asked.busy and time.monotonic() < until:
        cuda.fill(pointer, size)
    time.sleep(max(0.0, until - time.monotonic()))
    cuda.close()


if __name__ == "__main__":
    main()

"""A server of verbs: each runs in a fork of a process that has imported monkey already, as an interpreter costs most.

Orders come as lines of JSON: {"arguments", "cwd", "environment", "out"}. The answer is the verb's exit code; `out` gets
what it says.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from typing import Any

from monkey.cli.main import run_guarded


def run_verb(order: dict[str, Any], modules: int) -> None:
    """Run a verb as its own process does, and write into `modules` what that imported."""
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for stream in (1, 2):
        os.dup2(os.open(f"{order['out']}.{stream}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
    for told in (sys.stdout, sys.stderr):
        told.reconfigure(errors="backslashreplace")  # as `main` does
    code = run_guarded(order["arguments"])
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(modules, "\n".join(sys.modules).encode()[:60_000])
    os._exit(code)


def serve() -> None:
    """Run orders until there is no more input."""
    for line in sys.stdin:
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.close(read)
            run_verb(json.loads(line), write)
        os.close(write)
        with os.fdopen(read, "rb") as said:
            names = said.read().decode().split("\n")
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(code, flush=True)
        # The next verb finds what this one had to import.
        for name in names:
            # Not what uses libraries that do not survive a fork (Pulumi has grpc): that each verb imports itself.
            if name.startswith("monkey.") and name not in sys.modules:
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)


if __name__ == "__main__":
    serve()

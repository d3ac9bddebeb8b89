"""Facts of the Python that a job's command begins with, and of the packages that its environment was built with."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from shutil import which
from typing import Any

from monkey.protocol.record.facts import MAX_FACT_LENGTH, bound_lock
from monkey_agent.environments.interpreters import ask_program

READER = Path(__file__).with_name("interpreter_reader.py")
#: The file inside a built environment that lists its packages.
LOCK = "lock.txt"
_PYTHON = re.compile(r"python[\d.]*")


def find_python(command: str | Sequence[str], path: str | None) -> str | None:
    """Return the Python that a job's command begins with; else the one that `python` means on this PATH.

    None where it is in the job's own directory, which is not there yet, or where there is none.
    """
    words = command.split() if isinstance(command, str) else command
    first = words[0] if words else ""
    if _PYTHON.fullmatch(PurePath(first).name):
        return None if "/" in first and not first.startswith("/") else which(first, path=path)
    return which("python", path=path) or which("python3", path=path)


async def read_interpreter_facts(python: str | None, env: Mapping[str, str], venv: Path | None) -> dict[str, Any]:
    """Return the facts of a Python, run with these variables, and of the environment `venv`; those that are known."""
    facts: dict[str, Any] = {}
    if python is not None:
        told = _parse(await ask_program(python, str(READER), env=env, directory="/"))
        texts = told if isinstance(told, dict) else {}
        facts |= {
            name: texts[name][:MAX_FACT_LENGTH]
            for name in ("python", "python_build", "blas")
            if isinstance(texts.get(name), str) and texts[name]
        }
    lock = await _find_lock(venv, env) if venv is not None else None
    return facts if lock is None else {**facts, "lock": lock}


async def _find_lock(venv: Path, env: Mapping[str, str]) -> list[str] | None:
    """Return the lock that was recorded when the environment was built; one built before that was done is read now."""
    try:
        return bound_lock((venv / LOCK).read_text(errors="replace").splitlines())
    except OSError:
        return await list_installed_packages(venv, env)


async def list_installed_packages(venv: Path, env: Mapping[str, str]) -> list[str] | None:
    """Return the packages of an environment; None where its Python does not answer."""
    told = _parse(await ask_program(str(venv / "bin" / "python"), "-I", str(READER), "--lock", env=env, directory="/"))
    return bound_lock([line for line in told if isinstance(line, str)]) if isinstance(told, list) else None


def _parse(text: str) -> Any:
    try:
        return json.loads(text.strip().rpartition("\n")[2] or "null")
    except (ValueError, RecursionError):
        return None

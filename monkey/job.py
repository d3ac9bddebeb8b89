"""What a job may ask about itself: `monkey.params()`, `monkey.output_dir()`, `monkey.checkpoint_dir()`.

Each works outside of a sweep too, so that a training script needs no branch for it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def params(**defaults: Any) -> dict[str, Any]:
    """Return the job's parameters, nested as in the spec, over `defaults`; outside of a job the defaults alone.

    Groups merge: `params(optimizer={"lr": 0.1, "name": "sgd"})` keeps the name where the sweep varies `optimizer.lr`.
    """
    return _merged(defaults, json.loads(os.environ.get("MONKEY_PARAMS") or "{}"))


def output_dir() -> Path:
    """Return the directory whose files are kept with the job's results; outside of a job `./outputs`. Created."""
    return _directory("MONKEY_OUTPUT_DIR", "outputs")


def checkpoint_dir() -> Path:
    """Return the directory that the job's next attempt finds again; outside of a job `./checkpoints`. Created."""
    return _directory("MONKEY_CHECKPOINT_DIR", "checkpoints")


def _directory(variable: str, default: str) -> Path:
    path = Path(os.environ.get(variable) or default)
    path.mkdir(parents=True, exist_ok=True)
    return path


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    both = {name: _merged(under[name], over[name]) for name in under.keys() & over.keys() if _groups(under, over, name)}
    return {**under, **over, **both}


def _groups(under: dict[str, Any], over: dict[str, Any], name: str) -> bool:
    return isinstance(under[name], dict) and isinstance(over[name], dict)

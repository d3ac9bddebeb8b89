"""monkey: commit a sweep; the machines follow.

What a training script uses is here: `log`, `params`, `output_dir`, `checkpoint_dir`. `Project` reads results.

This file runs under any Python 3 that a job may have.
"""

import sys

# Not from `typing`, which costs each start of the command line a few milliseconds; type checkers know the name.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from monkey.job import checkpoint_dir, output_dir, params
    from monkey.metrics.metric_log import log
    from monkey.project_handle import Project
    from monkey.version import __version__

__all__ = ["Project", "__version__", "checkpoint_dir", "log", "output_dir", "params"]

_HOMES = {
    "Project": "monkey.project_handle",
    "__version__": "monkey.version",
    "checkpoint_dir": "monkey.job",
    "log": "monkey.metrics.metric_log",
    "output_dir": "monkey.job",
    "params": "monkey.job",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: the command line starts without them."""
    if name not in _HOMES:
        raise AttributeError(f"module 'monkey' has no attribute {name!r}")
    from importlib import import_module

    # Kept, so that `monkey.log` costs a training loop no more than a function of its own.
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


if sys.version_info < (3, 7):  # noqa: UP036  # a job's: it asks no __getattr__ of a module
    _told: list = []

    def log(*_: object, **__: object) -> None:
        """Record nothing, and say so once."""
        if not _told:
            found = ".".join(map(str, sys.version_info[:2]))
            _told.append(found)
            print(f"monkey.log: no metric is recorded: expected Python 3.7 or newer, found {found}", file=sys.stderr)

"""The push of paths and the report of every push, without click.

To import click takes longer than to see that the store has everything already.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from monkey.cli.terminal.progress_bars import ProgressBars

if TYPE_CHECKING:
    from monkey.apply.push_datasets import PushedDataset
    from monkey.spec.project.project import Project


def push_paths(paths: Sequence[str], project: Project | None = None) -> list[PushedDataset]:
    """Send these files and directories, from the project (default: around us). Raises MonkeyError of every kind."""
    from monkey.apply import push_datasets
    from monkey.spec.project.project import STORE_VARIABLE, load_project

    here = project or load_project(Path.cwd(), store=os.environ.get(STORE_VARIABLE))
    with ProgressBars() as bars:
        return push_datasets.push_paths(here, paths, bars.begin)


def format_push(pushed: Sequence[PushedDataset]) -> str:
    """Return the lines to print for these datasets."""
    return "\n".join(_line(one) for one in pushed) or "There are no datasets."


def _line(one: PushedDataset) -> str:
    from monkey.plan.sizes import format_size

    files = "1 file" if len(one.dataset.names) == 1 else f"{len(one.dataset.names):,} files"
    objects = "1 object" if one.objects == 1 else f"{one.objects:,} objects"
    done = f"{format_size(one.bytes)} in {objects} uploaded" if one.objects else "nothing to upload"
    return f"{one.name}: {one.dataset.oid}, {files}, {format_size(one.dataset.size)}; {done}"

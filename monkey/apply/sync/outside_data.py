"""Datasets outside of the repository: a branch could name any file here, and jobs elsewhere would get it."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monkey.apply.world.desired_state import LoadedSpec


@dataclass(frozen=True)
class DataLimits:
    """The places from which a sync takes data."""

    #: The work tree; what a person put there is their word for it.
    tree: Path
    #: Directories that the user named besides.
    allowed: Sequence[Path] = ()
    #: Links of the repository, absolute: one may lead anywhere.
    links: Collection[Path] = ()

    def find_outside(self, want: LoadedSpec) -> str | None:
        """Return why the sweep's data may not be taken; None where it may."""
        for name, data in sorted(want.datasets.items()):
            root = Path(data.root)
            inside = [link for link in self.links if link.is_relative_to(root)]
            for path in (root, *inside):
                if not self._allows(path):
                    real = os.path.realpath(path)
                    return f"dataset {name} is at {real}, outside of the repository; `--data {real}` permits it"
        return None

    def _allows(self, path: Path) -> bool:
        real = Path(os.path.realpath(path))
        places = [Path(os.path.realpath(place)) for place in (self.tree, *self.allowed)]
        return any(real.is_relative_to(place) for place in places)

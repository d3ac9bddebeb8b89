"""Groups of tests that run in one process, one after another: xdist gives each group to one of its processes.

Clusters and machines start for the first test that needs them; an engine of containers is reset by tests, for all.
xdist's own marks for groups change the names of tests, which pytest 9.2 does not heed any more.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

#: Group to the files whose tests are in it, and to the things of which its tests need one.
GROUPS = {
    "slurm": (r"tests/slurm/|tests/acceptance/test_(slurm_|shared_pilots|all_providers)", {"slurm"}),
    "kubernetes": (r"tests/acceptance/test_kubernetes_", {"kubernetes"}),
    "folding": (r"tests/folding/", {"folding-disk"}),
    "containers": (r"tests/acceptance/test_image", {"docker", "podman"}),
}


class GroupScheduling(LoadScopeScheduling):
    """Give each group to one process, and all other tests one by one."""

    def _split_scope(self, nodeid: str) -> str:
        return find_group(nodeid) or nodeid

    def remove_node(self, node: WorkerController) -> str | None:
        """Give the tests of a process that ended to others, but for the one that it ended with, which is returned.

        xdist would give that one to the next process, and the next, until all have ended.
        """
        for group in self.assigned_work[node].values():
            for test, is_over in group.items():
                if not is_over:
                    group[test] = True
                    super().remove_node(node)
                    return str(test)
        return super().remove_node(node)


def find_group(nodeid: str) -> str:
    """Return the group of a test; "" for none."""
    return next((name for name, (files, _) in GROUPS.items() if re.match(files, nodeid)), "")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Use the groups where they were asked for."""
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


def check_groups(item: pytest.Item) -> None:
    """Raise UsageError for a slow test that needs what a group has, and is in none."""
    if item.get_closest_marker("slow") is None:
        return
    needed = {mark.args[0] for mark in item.iter_markers("needs")}
    for name, (_, things) in GROUPS.items():
        if things & needed and not find_group(item.nodeid):
            raise pytest.UsageError(f"{item.nodeid} needs {things & needed}: add its file to {name!r} in {__name__}")

"""Sweeps whose spec is gone: which of them a plan shows, and which `--prune` cancels."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from monkey.plan.observed import ObservedProject, ObservedSweep
from monkey.spec.sweep.sweep_names import parse_check_name, parse_preview_name

#: The file name that the sweep of a `monkey run` has in place of a spec's path.
RUN_SOURCE = "(monkey run)"


@dataclass(frozen=True)
class GoneSweep:
    """A sweep of the store that is at work, or would be, and has no spec any more."""

    name: str
    #: The spec's path when it was applied last.
    source: str
    #: Number of its newest revision.
    revision: int
    #: Numbers of jobs that run, and that wait to be run.
    running: int
    waiting: int
    #: Why `--prune` does not cancel it; "" where it does.
    kept: str = ""
    #: Would an apply of this plan cancel it?
    pruned: bool = False


def find_gone_sweeps(
    observed: ObservedProject, wanted: Collection[str], branch: str | None, *, prune: bool
) -> tuple[GoneSweep, ...]:
    """Return the sweeps that came from specs of this branch, and that no spec is called any more.

    `branch`: the one whose specs these are; None where that is unknown, and then none is pruned. A sweep of another
    branch is none of this one's, and neither are those of `monkey run`, of previews and of checks.
    """
    found = _judge_sweeps(observed, wanted, branch)
    return tuple(
        GoneSweep(
            name,
            seen.applied.source,
            seen.applied_at,
            len(seen.running),
            seen.unfinished - len(seen.running),
            kept,
            pruned=prune and not kept,
        )
        for name, seen, kept in found
        if seen.applied is not None
    )


def _judge_sweeps(
    observed: ObservedProject, wanted: Collection[str], branch: str | None
) -> Iterator[tuple[str, ObservedSweep, str]]:
    """Yield the sweeps that are gone, each with why it is not to be cancelled."""
    for name, seen in sorted(observed.sweeps.items()):
        if name in wanted or seen.applied is None or _has_ended(seen) or parse_preview_name(name) is not None:
            continue
        if (check := parse_check_name(name)) and check.sweep in wanted:
            continue
        then = (seen.known_git or {}).get("branch")
        if seen.applied.source in ("", RUN_SOURCE) or (branch is not None and then is not None and branch != then):
            continue
        if then is None:
            yield name, seen, "the branch that it was applied from is unknown"
        else:
            yield name, seen, "" if branch is not None else "the branch of this commit is unknown"


def _has_ended(seen: ObservedSweep) -> bool:
    """Tell whether nothing of it is left to be cancelled; what no one trusted applied runs nowhere."""
    return seen.cancelled is not None or seen.over or seen.foreign or not seen.unfinished

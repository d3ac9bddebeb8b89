"""The attempts at a job, as its log has them, numbered as `MONKEY_ATTEMPT` numbers them."""

from __future__ import annotations

from typing import NamedTuple

from monkey.protocol.entries import Claim, ClaimEnd, EndEntry, JobEntry
from monkey.protocol.entry_log import EntryLog


class AttemptRecord(NamedTuple):
    """One try at a job."""

    #: 1 for the first. One that never began has the number of that which follows.
    number: int
    #: Position of its claim in the job's log: names the directory of what it left.
    k: int
    claim: Claim
    #: The entry that is over it: its end, the claim of another, or bytes that are no entry; None while there is none.
    after: JobEntry | None
    #: Position of `after`.
    end_k: int = 0

    @property
    def begun(self) -> bool:
        """Was its process started, as far as anybody knows? One that was claimed ahead may be given back."""
        return not isinstance(self.after, EndEntry) or self.after.is_of_process

    @property
    def lost_seconds(self) -> float:
        """Seconds that it ran by its agent's last heartbeat, if it was lost: the claim that took it over tells."""
        return self.after.lost_seconds if isinstance(self.after, Claim) else 0.0


def list_attempts(log: EntryLog) -> list[AttemptRecord]:
    """Return the attempts of a job whose log was read from its beginning."""
    found: list[AttemptRecord] = []
    for k, entry in enumerate(log.entries, 1):
        if isinstance(entry, Claim) and entry.continues:
            continue  # the same attempt continues
        if found and found[-1].after is None:
            found[-1] = found[-1]._replace(after=entry, end_k=k)
        if isinstance(entry, Claim):
            found.append(AttemptRecord(sum(each.begun for each in found) + 1, k, entry, None))
    return found


def find_success(log: EntryLog) -> EndEntry | None:
    """Return the end by which a job succeeded, of a log that was read; None where it has none."""
    ends = [one for one in log.entries if isinstance(one, EndEntry) and one.outcome is ClaimEnd.SUCCEEDED]
    return ends[-1] if ends else None

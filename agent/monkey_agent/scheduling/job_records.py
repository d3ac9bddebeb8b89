"""A job's record over its attempts: the end of one, and what it takes from those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from monkey.protocol.claims import HeldClaim
from monkey.protocol.entries import ClaimEnd, EndEntry
from monkey.protocol.record.job_attempts import AttemptRecord
from monkey.protocol.sweeps.verdicts import explain_cut
from monkey_agent.ports import AttemptEnd, AttemptOutcome
from monkey_agent.scheduling.active_attempt import ActiveAttempt

ENDED = {
    AttemptEnd.SUCCEEDED: ClaimEnd.SUCCEEDED,
    AttemptEnd.FAILED: ClaimEnd.FAILED,
    AttemptEnd.MET: ClaimEnd.STOPPED,
    AttemptEnd.STOPPED: ClaimEnd.RELEASED,
}


class EarlierOutputs(NamedTuple):
    """Outputs of earlier attempts: path to SHA-256, and to the attempt that left it (the position of its claim)."""

    digests: dict[str, str]
    places: dict[str, int]


def sum_seconds(earlier: Sequence[AttemptRecord]) -> float:
    """Return the seconds that attempts ran; of one that was lost, those until its last heartbeat."""
    ended = sum(each.after.seconds for each in earlier if isinstance(each.after, EndEntry))
    return round(ended + sum(each.lost_seconds for each in earlier), 3)


def collect_outputs(earlier: Sequence[AttemptRecord], *, resumed: bool) -> EarlierOutputs:
    """Return the outputs of earlier attempts, a later one's before an earlier one's.

    Those of a failed attempt are taken only if the job is `resumed` from a checkpoint: else it starts over.
    """
    found = EarlierOutputs({}, {})
    for each in earlier:
        end = each.after
        if isinstance(end, EndEntry) and (resumed or end.outcome is not ClaimEnd.FAILED):
            found.digests.update(end.outputs)
            found.places.update({path: end.outputs_at.get(path, end.out) for path in end.outputs})
    return found


def find_last_end(earlier: Sequence[AttemptRecord]) -> EndEntry | None:
    """Return the end of the newest attempt that logged or left something."""
    ends = [each.after for each in earlier if isinstance(each.after, EndEntry)]
    return next((end for end in reversed(ends) if end.metrics or end.usage or end.history), None)


def merge_record(
    earlier: Sequence[AttemptRecord], outputs: dict[str, str], *, resumed: bool, begun: bool
) -> dict[str, Any]:
    """Return the fields of an end entry that come from earlier attempts too.

    `outputs`: the attempt's own. `begun`: its process was started; else it leaves the record as it was.
    """
    kept = collect_outputs(earlier, resumed=resumed or not begun)
    fields: dict[str, Any] = {
        "before": sum_seconds(earlier),
        "outputs": dict(sorted((kept.digests | outputs).items())),
        "outputs_at": {path: k for path, k in sorted(kept.places.items()) if path not in outputs},
    }
    if not begun and (last := find_last_end(earlier)):
        fields |= {"metrics": last.metrics, "usage": last.usage, "history": last.history, "facts": last.facts}
    return fields


def make_end(
    work: ActiveAttempt, held: HeldClaim, outcome: AttemptOutcome, now: float, pilot_time: float = 0.0
) -> EndEntry:
    """Make the end of an attempt that was claimed by `held`; `now`: the agent's wall clock.

    `pilot_time`: the seconds that its machine had in all, if it was released because they are over; else 0.
    """
    attempt = work.attempt
    begun = work.running is not None and work.running.begun
    record = merge_record(attempt.earlier, outcome.outputs, resumed=bool(outcome.history), begun=begun)
    end = EndEntry(
        outcome=ENDED[outcome.ending],
        agent=held.claim.agent,
        nonce=held.claim.nonce,
        sweep=work.sweep,
        reason=outcome.reason,
        exit_code=outcome.exit_code,
        seconds=round(outcome.seconds, 3),
        at=round(now, 3),
        out=attempt.k,
        number=attempt.number,
        prepared=work.prepared if begun else 0.0,
        log_tail=outcome.log_tail if outcome.ending is AttemptEnd.FAILED else [],
        met=outcome.met.to_json() if outcome.met else {},
        **{
            "metrics": outcome.summary,
            "usage": outcome.usage,
            "facts": outcome.facts,
            "history": [part.to_json() for part in outcome.history],
            **record,
        },
        files=outcome.files.to_json() if outcome.files else None,
        pilot_time=pilot_time,
        checkpoint=outcome.checkpoint if pilot_time else 0,
    )
    return replace(end, reason=explain_cut(pilot_time)) if end.is_cut else end

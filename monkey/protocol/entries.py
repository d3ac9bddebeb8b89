"""Entries of a job's or a permit's log: claims and ends. An entry that was cut short never reads as either."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from monkey.protocol import entry_shape
from monkey.protocol.liveness.lease import read_lease
from monkey.protocol.record.end_files import is_end_files
from monkey.spec.job.lease_length import LEASE
from monkey.spec.job.stop_when import StopEvidence


class ClaimEnd(StrEnum):
    """The outcome of a claim."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RELEASED = "released"
    #: The job met a condition of `stop_when`.
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of a job by an agent. `seq`: number of the agent's last heartbeat then. Agent and nonce are unique."""

    agent: str
    nonce: int
    seq: int
    #: The sweep under whose settings the job runs.
    sweep: str
    #: Whether the agent has the job in hand already, and only claims it again (after a gap, or for another sweep).
    continues: bool = False
    #: For a takeover, the newest attempt that has a checkpoint in the store; 0 for none.
    checkpoint: int = 0
    #: Wall clock of the agent, seconds since the epoch; for people, never for decisions.
    at: float = 0.0
    #: For a takeover, the seconds that the lost attempt ran by its agent's last heartbeat.
    lost_seconds: float = 0.0
    #: Who applied the revision that the job runs under.
    user: str = ""
    #: Seconds that the agent may be silent before others take the job over.
    lease: float = LEASE

    def encode(self) -> bytes:
        """Return the bytes of the entry."""
        body: dict[str, Any] = {
            "kind": "claim",
            "agent": self.agent,
            "nonce": self.nonce,
            "seq": self.seq,
            "sweep": self.sweep,
            "at": self.at,
        }
        if self.continues:
            body["continues"] = True
        if self.checkpoint:
            body["checkpoint"] = self.checkpoint
        if self.lost_seconds:
            body["lost_seconds"] = self.lost_seconds
        if self.user:
            body["user"] = self.user
        if self.lease != LEASE:
            body["lease"] = self.lease
        return _dump(body)


@dataclass(frozen=True, slots=True)
class EndEntry:
    """The end of the claim before it. Only the claim's own agent writes it."""

    outcome: ClaimEnd
    agent: str
    #: The nonce of the claim that this ends.
    nonce: int
    sweep: str = ""
    reason: str = ""
    exit_code: int | None = None
    #: Seconds that the attempt ran.
    seconds: float = 0.0
    #: Wall clock of the agent, seconds since the epoch; for people, never for decisions.
    at: float = 0.0
    #: Position of the claim under which the attempt began: it names the directory of outputs.
    out: int = 0
    #: The attempt's number, 1 for the first that began; 0 in ends of earlier versions.
    number: int = 0
    #: Of the job: of the attempt, and of what it continued.
    metrics: dict[str, Any] = field(default_factory=dict)
    #: Relative path of every kept file to its SHA-256.
    outputs: dict[str, str] = field(default_factory=dict)
    log_tail: list[str] = field(default_factory=list)
    #: The evidence that a condition of `stop_when` was met, as `monkey.spec.job.stop_when.StopEvidence` writes it.
    met: dict[str, Any] = field(default_factory=dict)
    #: The attempt's usage of its machine, as `monkey.metrics.usage` returns it.
    usage: dict[str, float] = field(default_factory=dict)
    #: Hash of what the result came from, as `monkey.protocol.record.facts` has it; "" where that is not known.
    facts: str = ""
    #: Seconds that earlier attempts ran, and that passed from the claim to the start of the process.
    before: float = 0.0
    prepared: float = 0.0
    #: The attempts that it continued, as `monkey.protocol.record.history_parts` reads them.
    history: list[Any] = field(default_factory=list)
    #: Of the outputs, those that an earlier attempt left: path to the position of its claim.
    outputs_at: dict[str, int] = field(default_factory=dict)
    #: The seconds that its agent's machine had in all, if it was released because they were over; else 0.
    pilot_time: float = 0.0
    #: In that case, the newest attempt that has a checkpoint in the store, as the attempt knew; 0 for none.
    checkpoint: int = 0
    #: Files of the attempt, as `monkey.protocol.record.end_files` packs them; None: all of them are objects.
    files: dict[str, Any] | None = None

    @property
    def is_of_process(self) -> bool:
        """Was a process started? What is given back without one was only claimed ahead."""
        return self.outcome is not ClaimEnd.RELEASED or bool(self.prepared or self.seconds)

    @property
    def is_cut(self) -> bool:
        """Did the attempt save nothing, though it had half of its machine's time, or more, until that was over?"""
        return 0 < self.pilot_time <= 2 * self.seconds and self.checkpoint < self.out

    @property
    def total_seconds(self) -> float:
        """Seconds that all attempts at the job ran, to this one's end."""
        return round(self.before + self.seconds, 3)

    def without_files(self) -> EndEntry:
        """Return the same with no contents of files: logs that many processes keep in memory have ends by thousands."""
        return replace(self, files={}) if self.files else self

    def encode(self) -> bytes:
        """Return the bytes of the entry, without empty fields."""
        body: dict[str, Any] = {"kind": "end", "outcome": str(self.outcome), "agent": self.agent, "nonce": self.nonce}
        for name in _OPTIONAL:
            value = getattr(self, name)
            if value or (value == 0 and name == "exit_code" and value is not None):
                body[name] = value
        return _dump(body if self.files is None else body | {"files": self.files})


_OPTIONAL = (
    *("sweep", "reason", "exit_code", "seconds", "before", "prepared", "at", "out", "number", "metrics", "history"),
    *("outputs", "outputs_at", "log_tail", "met", "usage", "facts", "pilot_time", "checkpoint"),
)


@dataclass(frozen=True, slots=True)
class TornEntry:
    """An entry whose bytes are none: a loss of power cut them short. It counts as a claim that no agent holds."""

    key: str
    #: Why it was not even read; "" where it was.
    why: str = ""

    @property
    def agent(self) -> str:
        """Return the name of an agent that never beats."""
        return f"(torn) {self.key}"


JobEntry = Claim | EndEntry | TornEntry


#: The check of each field of an entry.
_SHAPE = {
    "agent": entry_shape.is_key,  # its heartbeat is looked for
    "nonce": entry_shape.is_whole,
    "seq": entry_shape.is_whole,
    "sweep": entry_shape.is_text,
    "continues": entry_shape.is_flag,
    "checkpoint": entry_shape.is_whole,
    "outcome": entry_shape.is_text,
    "reason": entry_shape.is_text,
    "exit_code": entry_shape.is_whole,
    "lost_seconds": entry_shape.is_moment,
    "user": entry_shape.is_text,
    "lease": lambda value: True,  # `read_lease` reads whatever it is
    "seconds": entry_shape.is_moment,
    "before": entry_shape.is_moment,
    "prepared": entry_shape.is_moment,
    "at": entry_shape.is_moment,
    "out": entry_shape.is_whole,
    "number": entry_shape.is_whole,
    "metrics": entry_shape.is_object_map,
    "history": lambda value: isinstance(value, list),
    "outputs": entry_shape.is_text_map,
    "outputs_at": entry_shape.is_whole_map,
    "log_tail": entry_shape.is_texts,
    "met": lambda value: isinstance(value, dict) and bool(StopEvidence.from_json(value)),
    "usage": entry_shape.is_number_map,
    "facts": entry_shape.is_text,
    "pilot_time": entry_shape.is_moment,
    "files": is_end_files,
}


def decode_entry(key: str, data: bytes) -> JobEntry:
    """Return the entry that these bytes are; a `TornEntry` for bytes that are none."""
    try:
        body = entry_shape.parse_object(data)
        kind = body.pop("kind")
        entry_shape.check_shape(body, _SHAPE)
        if kind == "claim":
            return Claim(lease=read_lease(body.pop("lease", None)), **body)
        if kind == "end":
            return EndEntry(outcome=ClaimEnd(body.pop("outcome")), **body)
    except (ValueError, KeyError, TypeError):
        pass
    return TornEntry(key, getattr(data, "why", ""))


#: Made once: `json.dumps` makes an encoder for each call with other options than its defaults.
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def _dump(body: dict[str, Any]) -> bytes:
    # What is no UTF-8 (a file's name in a reason) stays what it is: the escape that this makes of it is JSON's, too.
    return _ENCODER.encode(body).encode(errors="backslashreplace")

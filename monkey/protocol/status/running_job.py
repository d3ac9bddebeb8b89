"""What a heartbeat tells of a job in hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RunningJob:
    """What a heartbeat tells of a job in hand."""

    agent: str
    #: Position of the claim.
    k: int
    #: Time of the heartbeat, by the agent's clock.
    told: float
    number: int = 1
    sweep: str = ""
    began: float | None = None
    frozen: bool = False
    #: None while nothing is known: it is prepared.
    metrics: dict[str, Any] | None = None
    usage: dict[str, float] = field(default_factory=dict)

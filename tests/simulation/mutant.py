"""What a mutant of the protocol does otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field

from monkey_agent.scheduling.agent_identity import ProtocolParts


@dataclass
class Mutant:
    """Behaviours that break the protocol, switched on by a test."""

    parts: ProtocolParts = field(default_factory=ProtocolParts)
    #: An end entry replaces what is there.
    end_overwrites: bool = False
    #: No supervisor freezes jobs at the deadline.
    unsupervised: bool = False
    #: Jobs outlive an agent that is killed, with all that guards them, until another one starts on its machine.
    unguarded: bool = False
    #: How attempts exited is forgotten when the agent is killed.
    forgetful: bool = False
    #: Checkpoints are published before what was logged; what was to ride in an end is lost if nobody writes that.
    unshipped: bool = False
    unkept: bool = False
    #: Nobody acts on a sweep that reached its goal.
    deaf: bool = False
    #: Sweeps that expire are worked on all the same; or never again, however often they are extended.
    timeless: bool = False
    bygone: bool = False
    #: A hint that nothing is left is believed; or entries count whoever signed them, and for whatever place.
    credulous: bool = False
    obedient: bool = False
    #: Ends that come with a pilot's time do not tell so, or not of checkpoints. Jobs are claimed that may take longer.
    endless: bool = False
    blind: bool = False
    untimely: bool = False
    #: Seconds of virtual time after which a run that has not ended never will.
    patience: float = 30_000

"""Reading the sweeps of a fleet: what their logs say, as far as their signers are trusted, and what is wrong there."""

from __future__ import annotations

from monkey.errors import SigningError, StoreError, StoreRefused
from monkey.protocol.sweeps.sweep_log import read_sweep
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey_agent.scheduling.agent_context import AgentContext

#: Sentences of a heartbeat about logs that cannot be read as they are.
ALERTS = 10


class SweepReader:
    """The sweeps that the agent has read, each as of its last reading."""

    def __init__(self, context: AgentContext) -> None:
        """Know nothing yet."""
        self._store, self._keys = context.store, context.keys
        self._signers, self._errors = context.signers, context.errors
        self.states: dict[str, SweepState] = {}
        #: Names of all secrets that any sweep declared: who does not list one is not to inherit it.
        self.secrets: frozenset[str] = frozenset()
        #: Sweep to what people should know of it: why it is not worked on, and which entries count for nothing.
        self._unreadable: dict[str, str] = {}
        self._skipped: dict[str, str] = {}
        #: Sweep to its version when something happened here that nobody expected.
        self._aside: dict[str, tuple[object, ...]] = {}
        #: Why the list of signers cannot be read, "" where it can.
        self._signing_trouble = ""

    def refresh_signers(self) -> bool:
        """Forget all states if other signers are trusted now; return whether they are.

        A list that cannot be read changes nothing.
        """
        try:
            changed, self._signing_trouble = self._signers.refresh(), ""
        except SigningError as exc:
            changed, self._signing_trouble = False, exc.message
        if changed:
            self.states.clear()
        return changed

    async def read(self, name: str) -> bool:
        """Read what was appended to the sweep's logs; return whether its state changed. Raises StoreError.

        A sweep whose logs cannot be read, or that was set aside at this version, keeps its state.
        """
        known = self.states.get(name)
        try:
            state = await read_sweep(self._store, self._keys, self._signers, name, known)
        except StoreRefused as exc:  # of this log alone: listings are answered
            self._unreadable[name] = f"{self._keys.sweep_log(name)}: {exc.message}"
            return False
        except StoreError:
            raise
        except Exception as exc:
            self.set_aside(name, exc)
            return False
        if state.skipped != (known.skipped if known else None):
            self._skipped[name] = state.skipped.summary
            for key, why in state.skipped.named:
                self._errors.once(f"{key}: skipped, it counts for nothing: {why}")
        if self.is_aside(state):
            return False
        self._unreadable.pop(name, None)
        if refused := self.list_refused_secrets(state):
            who, names = state.signer.name if state.signer else "nobody", " ".join(refused)
            trouble = f"its signer {who} may not name secrets of this machine ({names})"
            self._unreadable[name] = f"{name}: {trouble}; their owner can allow it: `monkey trust --secret {names}`"
        self.states[name] = state
        if state.revision is not None and not self.secrets.issuperset(state.revision.settings.machine_secrets):
            self.secrets |= set(state.revision.settings.machine_secrets)
        return known is None or known.version != state.version

    def set_aside(self, name: str, exc: Exception) -> None:
        """Leave a sweep alone in which something unexpected happened, until its logs say more."""
        key = self._keys.sweep_log(name)
        self._aside[name] = self.states.get(name, SweepState(name)).version
        self._unreadable[name] = f"{key}: this agent leaves it alone: {self._errors.tell(key, exc)}"

    def is_aside(self, state: SweepState) -> bool:
        """Is the sweep left alone at this version?"""
        return self._aside.get(state.name) == state.version

    def list_refused_secrets(self, state: SweepState) -> list[str]:
        """Return the secrets of this machine that the sweep's newest revision names, and its signer may not."""
        names = state.revision.settings.machine_secrets if state.revision else ()
        return self._signers.list_refused_secrets(self._keys.project, state.signer, names)

    @property
    def alerts(self) -> list[str]:
        """What people should know, at most `ALERTS` sentences."""
        found = [self._signing_trouble, *self._unreadable.values(), *self._skipped.values()]
        return [sentence for sentence in found if sentence][:ALERTS]

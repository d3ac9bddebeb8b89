"""Jobs that the supervisor is to start later: each in its turn, when the one that it follows has exited."""

from __future__ import annotations

#: What a job is started with: name, argv, number of its environment, variables over that, directory, file for output,
#: bytes of memory (0: any number), seconds for processes that linger.
How = tuple[str, list[str], int, dict[str, str], str, str, int, float]


class PendingJob:
    """A job that waits for its turn."""

    __slots__ = ("after", "called", "held", "how", "key")

    def __init__(self, key: int, after: int, how: How) -> None:
        self.key, self.after, self.how = key, after, how
        #: The agent said that it is its turn.
        self.called = False
        #: The agent froze it.
        self.held = False


class PendingJobs:
    """All jobs that wait, by their own key and by that of the job that they follow."""

    def __init__(self) -> None:
        self._waiting: dict[int, PendingJob] = {}
        self._followers: dict[int, PendingJob] = {}

    def add(self, waiting: PendingJob) -> None:
        """Let a job wait."""
        self._waiting[waiting.key] = self._followers[waiting.after] = waiting

    def find(self, key: int) -> PendingJob | None:
        """Return the job if it waits."""
        return self._waiting.get(key)

    def follower(self, key: int) -> PendingJob | None:
        """Return the job that follows this one."""
        return self._followers.get(key)

    def remove(self, waiting: PendingJob) -> None:
        """It waits no more."""
        del self._waiting[waiting.key]
        self._followers.pop(waiting.after, None)

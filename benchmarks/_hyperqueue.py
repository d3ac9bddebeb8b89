"""HyperQueue's Python package at work, in an environment of its own: prints how many tasks finished, and seconds.

The package waits for a job by asking once a second. Here it is asked every few milliseconds, so that its end is seen.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

#: Seconds between questions.
POLL = 0.02


class Seen(Exception):
    """The package goes on to wait unless its callback raises."""


def main(jobs: int, slots: int, command: list[str]) -> None:
    """Run the command `jobs` times, with its number where it is more than a no-op."""
    counts: dict[str, int] = {}

    def look(told: dict[int, dict[str, int]]) -> None:
        [one] = told.values()
        counts.update(one)
        raise Seen

    with LocalCluster(str(Path.cwd() / "server"), WorkerConfig(cores=slots)) as cluster:
        client = cluster.client()
        begun = time.perf_counter()
        job = Job()
        for i in range(jobs):
            job.program(command if command == ["true"] else [*command, str(i)], stdout=None, stderr=None)
        submitted = client.submit(job)
        while not counts.get("completed"):
            try:
                client.connection.wait_for_jobs((submitted.id,), look)
            except Seen:
                time.sleep(POLL)
        seconds = time.perf_counter() - begun
    print(counts["finished"], seconds)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])

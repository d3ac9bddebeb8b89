"""A job's sockets for line protocol: UDP at 10,000 points a second, the unix socket as fast as it takes them.

Bars: at most 0.1 % of UDP's points are lost, none of the unix socket's. UDP is measured twice: with the room that the
kernel gives here, and with the 208 KiB that it gives where nobody raised net.core.rmem_max. Also: what both cost a job
that sends nothing, and the receiver's CPU time a point.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
import time
from pathlib import Path

from _common import report

sys.path.insert(0, str(Path(__file__).parent.parent))

from monkey_agent.execution.workspace import Workspace, Workspaces
from monkey_agent.receiving.metric_readers import MetricReaders
from monkey_agent.receiving.metric_sockets import SOCKET_VARIABLE, UDP_VARIABLE
from monkey_agent.receiving.received_records import RECEIVED_FILE

#: Points a second by UDP, for so many seconds; points by the unix socket; jobs that send nothing.
RATE, SECONDS, COUNT, JOBS = 10_000, int(os.environ.get("SECONDS", "10")), 200_000, 2_000
#: What Linux gives a socket where nobody says otherwise; it counts its own bookkeeping, too.
DEFAULT_ROOM = 212_992
#: Sends ten points each millisecond, in one process.
UDP_SENDER = """if True:
    import socket, sys, time
    host, port, rate, seconds = sys.argv[1], *map(int, sys.argv[2:])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect((host, port))
        begun, sent = time.perf_counter(), 0
        while sent < rate * seconds:
            due = min(int((time.perf_counter() - begun) * rate), rate * seconds)
            for step in range(sent, due):
                sender.send(b"loss,layer=3 value=0.31231231231231232,step=%di" % step)
            sent = due
            time.sleep(0.001)
"""
UNIX_SENDER = """if True:
    import socket, sys
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(sys.argv[1])
        for step in range(int(sys.argv[2])):
            sender.send(b"loss,layer=3 value=0.31231231231231232,step=%di" % step)
"""


def read_cpu(pid: int) -> float:
    """Return the seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def count_lines(space: Workspace) -> int:
    """Return how many points were received."""
    return Path(space.metrics, RECEIVED_FILE).read_bytes().count(b"\n")


def take(spaces: Workspaces, job: str) -> Workspace:
    """Return a job's workspace, with the log that each job has."""
    space = spaces.take(job, 1)
    Path(space.log).touch()
    return space


async def measure(spaces: Workspaces, job: str, sender: str, *words: str, room: int = 0) -> dict[str, float]:
    """Run a sender beside a receiver; returns points that came, seconds, and the receiver's CPU seconds."""
    space = spaces.take(job, 1)
    assert space.sockets is not None
    if room:
        with socket.socket(fileno=os.dup(space.sockets.udp)) as udp:
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    names, notes = space.sockets.name_variables(space.root), list[str]()
    readers = MetricReaders(space, [], notes.append)
    host, _, port = names[UDP_VARIABLE].partition(":")
    where = [names[SOCKET_VARIABLE]] if sender is UNIX_SENDER else [host, port]
    begun = time.perf_counter()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", sender, *where, *words)
    await process.wait()
    await readers.catch_up()
    seconds = time.perf_counter() - begun
    receiver = readers._receiver._process
    assert receiver is not None
    cpu = read_cpu(receiver.pid)
    await readers.finish()
    came = count_lines(space)
    for note in notes:
        print(f"  {note}", flush=True)
    spaces.give(space)
    return {"points": came, "seconds": seconds, "cpu": cpu}


async def measure_silent(spaces: Workspaces) -> float:
    """Return the CPU seconds that the sockets cost a job that sends nothing, with all that its workspace costs."""
    begun = time.process_time()
    for number in range(JOBS):
        space = spaces.take(f"{number:016x}", 1) if number else take(spaces, "0" * 16)
        readers = MetricReaders(space, [], print)
        await readers.finish()
        spaces.give(space)
    return (time.process_time() - begun) / JOBS


async def main() -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory() as place:
        spaces, sent = Workspaces(Path(place)), RATE * SECONDS
        words = str(RATE), str(SECONDS)
        lost = {}
        for name, room in {"udp": 0, "udp, 208 KiB of room": DEFAULT_ROOM}.items():
            found = await measure(spaces, "a" * 16, UDP_SENDER, *words, room=room)
            lost[name] = 100 * (sent - found["points"]) / sent
            cpu = found["cpu"] / found["points"] * 1e6
            print(f"{name:>22}: {lost[name]:.3f} % of {sent:,} lost, {cpu:.1f} µs of CPU a point", flush=True)
        found = await measure(spaces, "b" * 16, UNIX_SENDER, str(COUNT))
        assert found["points"] == COUNT, "points are lost"
        rate, cpu = COUNT / found["seconds"], found["cpu"] / COUNT * 1e6
        print(f"{'unix':>22}: none of {COUNT:,} lost, {rate:,.0f} points/s, {cpu:.1f} µs of CPU a point", flush=True)
        silent = await measure_silent(spaces) * 1e6
        print(f"{'a job that is silent':>22}: {silent:.0f} µs of CPU, with its workspace", flush=True)
        spaces.close()
    what = f"percent of UDP's points lost at {RATE:,} a second; unix {rate:,.0f} points/s, none lost"
    report("sockets", what, lost["udp"], {"208 KiB of room": lost["udp, 208 KiB of room"]}, lost["udp"] / 0.1)


if __name__ == "__main__":
    asyncio.run(main())

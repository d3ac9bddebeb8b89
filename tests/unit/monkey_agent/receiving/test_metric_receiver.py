"""An attempt's sockets, with real processes at both ends: what is sent is in the file, or is counted."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from monkey_agent.execution.workspace import Workspace, Workspaces
from monkey_agent.receiving.metric_receiver import MetricReceiver
from monkey_agent.receiving.metric_sockets import SOCKET_VARIABLE, UDP_VARIABLE
from monkey_agent.receiving.received_records import RECEIVED_FILE

DOCS = Path(__file__).parents[4] / "docs/metrics.md"
#: Sends so many lines to a unix socket, as fast as they are taken.
SENDER = """if True:
    import socket, sys
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(sys.argv[1])
        for step in range(int(sys.argv[2])):
            sender.send(b"loss value=%d.5,step=%di" % (step, step))
"""


class Room:
    """A workspace with its sockets, and what was said in its job's log."""

    def __init__(self, root: Path) -> None:
        self.spaces, self.notes = Workspaces(root), list[str]()
        self.begin("a" * 16)

    def begin(self, job: str) -> None:
        """Give the workspace to another job."""
        self.space = self.spaces.take(job, 1)
        Path(self.space.log).touch()
        assert self.space.sockets is not None
        self.names = self.space.sockets.name_variables(self.space.root)
        self.receiver = MetricReceiver(self.space, self.notes.append)

    async def end(self) -> None:
        await self.receiver.finish()
        self.spaces.give(self.space)

    def send(self, *lines: str) -> None:
        host, _, port = self.names[UDP_VARIABLE].partition(":")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for line in lines:
                sender.sendto(line.encode(), (host, int(port)))

    async def flood(self, count: int) -> None:
        await run(sys.executable, "-c", SENDER, self.names[SOCKET_VARIABLE], str(count))

    def found(self) -> list[Any]:
        path = Path(self.space.metrics, RECEIVED_FILE)
        return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []

    def written(self) -> bytes:
        return Path(self.space.metrics, RECEIVED_FILE).read_bytes()

    def tear(self) -> None:
        """Leave a line that is cut short, as a receiver does that is killed."""
        with Path(self.space.metrics, RECEIVED_FILE).open("a") as file:
            file.write('{"m":{"torn')

    @property
    def path(self) -> Path:
        return Path(self.names[SOCKET_VARIABLE])

    def steps(self) -> list[int]:
        return [record["step"] for record in self.found()]


async def run(*command: str, env: dict[str, str] | None = None) -> None:
    process = await asyncio.create_subprocess_exec(*command, env=env)
    assert await process.wait() == 0


Play = Callable[[Callable[[Room], Awaitable[None]]], None]


@pytest.fixture
def play(tmp_path_factory: pytest.TempPathFactory) -> Play:
    # A test's own directory has a name so long that no socket's path could lie there.
    root = tmp_path_factory.mktemp("r")

    def go(scene: Callable[[Room], Awaitable[None]]) -> None:
        async def main() -> None:
            room = Room(root)
            try:
                await scene(room)
            finally:
                room.space.close_sockets()
                room.spaces.close()

        asyncio.run(main())

    return go


def test_senders_that_wait_lose_nothing_and_the_end_has_all(play: Play) -> None:
    async def scene(room: Room) -> None:
        await room.flood(3000)
        assert room.receiver._process is not None, "the first datagram starts it"
        await room.receiver.finish()
        assert room.steps() == list(range(3000)) and not room.notes
        assert {record["m"]["loss"] - record["step"] for record in room.found()} == {0.5}
        await room.receiver.finish()  # asked again where the store did not take the files
        assert len(room.steps()) == 3000

    play(scene)


def test_what_comes_by_udp_before_the_receiver_is_ready_is_kept(play: Play) -> None:
    async def scene(room: Room) -> None:
        room.send(*(f"loss,layer=3 value=1,step={step}i" for step in range(50)))
        await asyncio.sleep(0)
        room.send(*(f"loss,layer=3 value=1,step={step}i" for step in range(50, 100)))
        assert await room.receiver.look() and room.steps() == list(range(100))
        room.send("loss value=2 1790000000000000001\nacc value=1i")
        await room.receiver.catch_up()
        tagged, (loss, acc) = room.found()[:100], room.found()[100:]
        assert all(record["tags"] == {"layer": "3"} for record in tagged)
        assert loss["m"] == {"loss": 2.0} and loss["step"] is None and "tags" not in loss and acc["m"] == {"acc": 1}
        assert b'"t":1790000000000000001e-9' in room.written()
        await room.end()

    play(scene)


def test_what_the_documentation_shows_is_received(require: Callable[[str], str], play: Play) -> None:
    section = DOCS.read_text().split("\n## Line protocol\n")[1].split("\n## ")[0]
    programs = re.findall(r"^```(python|bash)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    plain = [(language, code) for language, code in programs if "telegraf" not in code]
    tools = {"python": sys.executable, **{tool: require(tool) for tool in ("bash",)}}

    async def scene(room: Room) -> None:
        env = {**os.environ, **room.names}
        for language, code in plain:
            await run(tools[language], "-c", code, env=env)
        await room.receiver.finish()
        # In any order: a socket keeps its own, and no more.
        found = sorted((json.dumps(record["m"]), record["step"], str(record.get("tags"))) for record in room.found())
        assert found == [('{"loss": 0.3}', 10, "None"), ('{"loss": 0.3}', 10, "{'layer': 'conv1'}")]

    assert len(plain) == 2
    play(scene)


def test_losses_of_every_kind_are_counted_and_said(play: Play) -> None:
    async def scene(room: Room) -> None:
        assert room.space.sockets is not None
        with socket.socket(fileno=os.dup(room.space.sockets.udp)) as udp:
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        room.send(*["loss value=1"] * 500)
        await room.flood(1)
        room.send("so much nonsense", 'm text="a"', "x\x01 value=1", f"m,{'k' * 65}=1 a=1")
        await room.receiver.finish()
        lost = 502 - len(room.found())
        text = {note.partition(" ")[2].partition(" that were sent")[0]: note for note in room.notes}
        assert lost > 0 and any(f"{lost} datagrams of UDP are lost" in note for note in room.notes), room.notes
        assert {"lines", "fields", "values", "tags"} <= text.keys(), room.notes

    play(scene)


def test_a_receiver_that_is_killed_is_started_again_and_what_waits_is_kept(play: Play) -> None:
    async def scene(room: Room) -> None:
        await room.flood(5)
        assert await room.receiver.look()
        room.tear()
        process = room.receiver._process
        assert process is not None
        process.kill()
        await process.wait()
        room.send("loss value=1,step=5i")
        assert not await room.receiver.look() and len(room.notes) == 1 and "could not be read" in room.notes[0]
        await room.receiver.finish()
        lines = room.written().split(b"\n")
        assert lines[5] == b'{"m":{"torn' and json.loads(lines[6])["step"] == 5

    play(scene)


def test_sockets_nobody_used_are_handed_on_and_used_ones_are_not(play: Play) -> None:
    async def scene(room: Room) -> None:
        first, address = room.space.sockets, room.names
        await room.end()
        room.begin("b" * 16)
        assert room.space.sockets is first and room.names[UDP_VARIABLE] == address[UDP_VARIABLE]
        assert "b" * 16 in room.names[SOCKET_VARIABLE]
        await room.flood(2)
        await room.receiver.finish()
        assert room.steps() == [0, 1], "a new name leads to the same socket"
        room.spaces.give(room.space)
        room.begin("c" * 16)
        assert room.space.sockets is not first and room.found() == []
        room.path.unlink()
        room.path.touch()
        second = room.space.sockets
        await room.end()
        room.begin("d" * 16)
        assert room.space.sockets is not second and room.path.is_socket()
        await room.end()

    play(scene)


def test_a_job_that_sends_nothing_has_no_process_and_no_file(play: Play) -> None:
    async def scene(room: Room) -> None:
        assert stat.S_IMODE(room.path.stat().st_mode) == 0o600
        assert await room.receiver.look()
        await room.receiver.catch_up()
        await room.receiver.finish()
        assert room.receiver._process is None and not room.found()

    play(scene)


def test_a_full_disk_makes_no_sender_wait(require: Callable[[str], str], tmp_path: Path) -> None:
    require("mount")
    code = f"""if True:
        import sys
        from monkey_agent.receiving.line_protocol import parse_lines
        from monkey_agent.receiving.received_records import ReceivedRecords
        records = ReceivedRecords({str(tmp_path)!r})
        for step in range(4000):
            records.add(next(parse_lines("loss value=1,step=%di" % step)))
        records.flush()
        [note] = records.tell(0, over=True)
        print(note)
    """
    mounted = f'mount -t tmpfs -o size=64k none {tmp_path} && "$0" -c "$1" && cat {tmp_path}/{RECEIVED_FILE} | wc -l'
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", mounted, sys.executable, code],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    note, kept = done.stdout.splitlines()
    lost = int(note.partition(" ")[0].replace(",", ""))
    assert lost + int(kept) == 4000 and 0 < lost < 4000 and "points that were sent are lost" in note, done


def test_the_kernel_says_how_many_datagrams_found_no_room() -> None:
    """SO_MEMINFO is the only one that also counts the last ones, which no further datagram follows."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taker,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        taker.bind(("127.0.0.1", 0))
        for _ in range(100):
            sender.sendto(b"x", taker.getsockname())
        dropped = struct.unpack("9I", taker.getsockopt(socket.SOL_SOCKET, 55, 36))[8]
        taker.setblocking(False)
        kept = sum(1 for _ in iter(lambda: receive(taker), b""))
        assert dropped > 0 and kept + dropped == 100


def receive(taker: socket.socket) -> bytes:
    try:
        return taker.recv(100)
    except BlockingIOError:
        return b""


def test_a_job_without_sockets_has_no_variables_and_runs(tmp_path: Path) -> None:
    async def main() -> None:
        space = Workspace("a", str(tmp_path / "attempts" / "a.1"))
        receiver = MetricReceiver(space, print)
        assert not receiver.is_needed()
        await receiver.finish()

    asyncio.run(main())

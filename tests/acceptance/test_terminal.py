"""On a real terminal: a picture that is redrawn, Ctrl-C that detaches, and a terminal left as it was."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.acceptance.shop import Shop, until
from tests.needs import require_thing


class Screen:
    """The master's end of a terminal, and all that was written to it."""

    def __init__(self, pid: int, fd: int) -> None:
        self.pid, self.fd, self.seen = pid, fd, ""
        #: When something came, and how much had come by then.
        self.times: list[tuple[float, int]] = []

    def read(self, seconds: float = 0.05) -> str:
        """Take in what comes within so many seconds, and return all that ever came."""
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
                self.times.append((time.monotonic(), len(self.seen)))
            except OSError:  # the other end is closed
                time.sleep(seconds)
        return self.seen

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.fd, keys.encode())

    def ended(self) -> int:
        """Wait for the program's end and return its exit code."""
        code: list[int] = []

        def over() -> bool:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            code.extend([os.waitstatus_to_exitcode(status)] if pid else [])
            return bool(pid)

        until(over, "the program ends")
        self.read(0.2)
        return code[0]


@contextmanager
def on_terminal(shop: Shop, *arguments: str, columns: int = 100, **env: str) -> Iterator[Screen]:
    """Run monkey in the project, on a terminal of so many columns."""
    require_thing("terminal")
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(shop.root)
        command = [sys.executable, "-P", "-m", "monkey.cli.main", *arguments]
        os.execve(command[0], command, {**shop.env, **env})
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    try:
        yield Screen(pid, fd)
    finally:
        os.close(fd)


def plain(text: str) -> str:
    """Return the text without escape sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@pytest.mark.slow
def test_progress_is_redrawn_every_second_and_ends_in_the_table(shop: Shop) -> None:
    shop.spec(jobs=8, seconds=0.9)
    with on_terminal(shop, "apply") as screen:
        assert screen.ended() == 0
    assert "\x1b[" in screen.seen and "━" in screen.seen
    counts = re.findall(r"(\d+)/8", plain(screen.seen))
    assert len(set(counts)) >= 4 and counts == sorted(counts, key=int), counts
    gaps = [after - before for (before, _), (after, _) in zip(screen.times, screen.times[1:], strict=False)]
    assert sum(gap > 1.5 for gap in gaps) <= 1, "it stood still, and not just for once as the machine may"
    assert screen.seen.count("\x1b[?25h") >= screen.seen.count("\x1b[?25l"), "the cursor is shown again"
    assert plain(screen.seen).rstrip().endswith("sweep: all 8 jobs succeeded.")


def test_ctrl_c_detaches_and_leaves_the_terminal_as_it_was(shop: Shop) -> None:
    shop.spec(jobs=4)
    shop.ledger.hold()
    with on_terminal(shop, "apply") as screen:
        until(lambda: "running" in plain(screen.read()), "work is shown")
        before = termios.tcgetattr(screen.fd)
        screen.type("\x03")
        assert screen.ended() == 130
        assert termios.tcgetattr(screen.fd) == before
    end = plain(screen.seen)[-400:]
    assert "Detached: sweep goes on" in end and "monkey cancel sweep" in end
    assert screen.seen.rindex("\x1b[?25h") > screen.seen.rindex("\x1b[?25l")
    shop.ledger.release()
    until(lambda: len(shop.ledger.digests) == 4, "the sweep goes on")


@pytest.mark.slow
def test_removal_of_running_jobs_is_asked_and_no_means_no(shop: Shop) -> None:
    shop.spec(jobs=2, seconds=30)
    shop.run("apply", "--detach")
    until(lambda: shop.states().get("running"), "jobs run, and the store says so")
    shop.spec(jobs=1, seconds=0.1)
    for verb in ("apply", "destroy"):
        with on_terminal(shop, verb) as screen:
            until(lambda screen=screen: "[y/N]" in screen.read(), "it asks")
            screen.type("\x03")
            assert screen.ended() == 130
        assert "interrupted" in screen.seen
    assert shop.jobs
    with on_terminal(shop, "apply") as screen:
        until(lambda: "[y/N]" in screen.read(), "it asks")
        screen.type("n\r")
        assert screen.ended() == 1
    assert "nothing was applied" in screen.seen
    assert shop.jobs
    with on_terminal(shop, "apply") as screen:
        until(lambda: "[y/N]" in screen.read(), "it asks")
        screen.type("y\r")
        assert screen.ended() == 0
    assert shop.states() == {"succeeded": 1}


def test_no_colour_and_dumb_terminals_are_respected(shop: Shop) -> None:
    shop.spec(jobs=2)
    with on_terminal(shop, "plan", NO_COLOR="1") as screen:
        screen.ended()
    assert "\x1b" not in screen.seen and "+ i{0,1}" in screen.seen
    with on_terminal(shop, "apply", TERM="dumb") as screen:
        assert screen.ended() == 0
    assert "\x1b" not in screen.seen
    with on_terminal(shop, "status") as screen:
        screen.ended()
    assert "\x1b[" in screen.seen


@pytest.mark.slow
def test_narrow_terminals_get_no_line_that_wraps(shop: Shop) -> None:
    shop.spec(jobs=3)
    shop.run("apply")
    for verb in (["status"], ["list", "jobs"], ["results"], ["plan", "--all"]):
        with on_terminal(shop, *verb, columns=40) as screen:
            screen.ended()
        lines = [line for line in plain(screen.seen).splitlines() if not line.startswith(("store ", "No changes"))]
        assert max(map(len, lines)) <= 40, (verb, lines)


def test_hostile_logs_do_not_steer_the_terminal(shop: Shop) -> None:
    shop.spec(
        "command: [sh, -c, 'printf \"\\\\033]0;gotcha\\\\007\\\\033[2Jclean\\\\n\"']\nparameters: {}\noutputs: []\n"
    )
    shop.run("apply")
    (job,) = shop.json("list", "jobs")
    with on_terminal(shop, "logs", job["job"]) as screen:
        screen.ended()
    assert screen.seen == "clean\r\n"
    assert shop.run("logs", job["job"]).stdout == "\x1b]0;gotcha\x07\x1b[2Jclean\n"


#: What no terminal may be sent: what it would obey, and what turns the text around.
OBEYED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
TURNED = """\
import sys
from pathlib import Path
for name in ("model\\u202egnp.pt", "a\\u2066b\\u061c.txt", "x\\x9b31m.txt"):
    Path(name).write_text("trained")
sys.exit("why \\u202enot\\u061c: \\x9b31m")
"""
VERBS = """
status sweep; list jobs; list jobs --json; info JOB; info JOB --json; results; results --csv; results --json
verify JOB; fetch JOB -o here; fetch JOB -o there --json; logs JOB
"""


def test_names_of_a_job_turn_no_text_around(shop: Shop) -> None:
    """Names of its outputs, its parameters and its log; as JSON and as CSV, too."""
    (shop.root / "turn.py").write_text(TURNED)
    parameters = 'parameters: {x: ["v\\u202ew\\u061c\\u2066"], y: [1, 2]}'
    shop.spec(f'command: [python3, turn.py]\n{parameters}\noutputs: ["*.*t"]\nmax_retries: 0\n')
    shop.run("apply", code=1)
    job = shop.json("list", "jobs")[0]
    assert "model\u202egnp.pt" in job["outputs"] and job["parameters"]["x"] == "v\u202ew\u061c\u2066"
    for verb in VERBS.replace("JOB", job["job"]).replace("\n", "; ").split("; "):
        if verb:
            with on_terminal(shop, *verb.split()) as screen:
                screen.ended()
            assert not OBEYED.findall(plain(screen.seen)), f"{verb}: {OBEYED.findall(plain(screen.seen))}"

"""The leash, with real processes: nothing of what it started is left, however it comes to an end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from monkey.protocol.clock import CLOCK
from tests.acceptance.shop import until

ROOT = Path(__file__).parents[4]
LEASH = ROOT / "stacks/monkey_stacks/engine/engine_supervisor.py"
#: Starts one that hides: a session of its own, its parent gone.
HIDES = """
import os, sys, time
if not os.fork():
    os.setsid()
    if not os.fork():
        open(sys.argv[1] + ".aside", "w").write(str(os.getpid()))
        os.rename(sys.argv[1] + ".aside", sys.argv[1])
        time.sleep(300)
    os._exit(0)
os.wait()
"""


class Leash:
    """A run of a few lines of Python on the leash."""

    def __init__(self, script: str, *arguments: str) -> None:
        reading, self.pipe = os.pipe()
        command = [sys.executable, "-I", "-S", str(LEASH), str(ROOT), str(reading), str(int(CLOCK))]
        command += [sys.executable, "-I", "-S", "-c", script, *arguments]
        self.process = subprocess.Popen(command, pass_fds=(reading,), start_new_session=True)
        os.close(reading)

    def tell(self, word: str) -> None:
        os.write(self.pipe, f"{word}\n".encode())

    def close(self) -> None:
        if self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1

    def wait(self) -> int:
        try:
            return self.process.wait(60)
        finally:
            self.close()


def pid_in(path: Path) -> int:
    return int(until(lambda: path.exists() and path.read_text(), "it has begun"))


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_its_exit_code_is_the_program_s() -> None:
    assert Leash("raise SystemExit(3)").wait() == 3
    assert Leash("import os, signal; os.kill(os.getpid(), signal.SIGTERM)").wait() == 128 + signal.SIGTERM


def test_what_the_program_left_behind_ends_with_it(tmp_path: Path) -> None:
    assert Leash(HIDES, str(tmp_path / "pid")).wait() == 0
    if (tmp_path / "pid").exists():  # it may have been killed before it could say its name
        assert gone(pid_in(tmp_path / "pid"))


@pytest.mark.parametrize("how", ["close", "deadline"])
def test_all_ends_when_the_pipe_closes_or_the_deadline_passes(tmp_path: Path, how: str) -> None:
    leash = Leash(HIDES + "time.sleep(300)", str(tmp_path / "pid"))
    hidden = pid_in(tmp_path / "pid")
    if how == "close":
        leash.close()
    else:
        leash.tell(repr(time.clock_gettime(CLOCK) + 3600))
        assert leash.process.poll() is None
        leash.tell(repr(time.clock_gettime(CLOCK) - 1))
    assert leash.wait() == 128 + signal.SIGKILL
    assert gone(hidden)


def test_an_interrupt_reaches_the_program_alone(tmp_path: Path) -> None:
    script = f"open({str(tmp_path / 'pid')!r}, 'w').write('1')\nimport time\ntry:\n time.sleep(300)\n"
    leash = Leash(script + "except KeyboardInterrupt:\n raise SystemExit(7)")
    pid_in(tmp_path / "pid")
    leash.tell("interrupt")
    assert leash.wait() == 7


def test_a_program_that_is_not_there_is_said_so() -> None:
    reading, writing = os.pipe()
    command = [sys.executable, "-I", "-S", str(LEASH), str(ROOT), str(reading), str(int(CLOCK)), "/no/such/program"]
    done = subprocess.run(command, pass_fds=(reading,), capture_output=True, text=True)
    os.close(reading)
    os.close(writing)
    assert (done.returncode, done.stderr) == (127, "/no/such/program: No such file or directory\n")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_program_holds_nothing_but_its_streams() -> None:
    # As of jobs: libffi before 3.5.2 opens a file that programs inherit.
    # The listing itself is descriptor 3 where that is free.
    listing = "import os; raise SystemExit(max(map(int, os.listdir('/proc/self/fd'))))"
    assert Leash(listing).wait() == 3

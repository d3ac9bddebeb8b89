"""Whether a container ran its command, how long jobs rest after a runtime's fault, and what it says of that."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from monkey.spec.job.recipe import JobResources
from monkey_agent.containers.container_start import has_begun, is_image_at_fault, quote_runtime, write_start_mark
from monkey_agent.containers.first_process import make_shell_arguments
from monkey_agent.containers.runtime_faults import RuntimeFaults, StartedKind

NUMBER = "0123456789abcdef"
TRAIN, OTHER = StartedKind("sha256:a", JobResources()), StartedKind("sha256:a", JobResources(memory=1))


def run_alive(words: list[str]) -> subprocess.CompletedProcess[bytes]:
    """Run the first process of a container, while its supervisor lives."""
    end, ours = os.pipe()
    try:
        return subprocess.run(words, stdin=end, capture_output=True)
    finally:
        os.close(end)
        os.close(ours)


def test_the_command_runs_only_once_the_mark_is_empty(tmp_path: Path) -> None:
    mark = tmp_path / "the mark"
    write_start_mark(str(mark), NUMBER)
    assert mark.read_text() == NUMBER and not has_begun(str(mark), NUMBER)
    words = ["/bin/sh", *make_shell_arguments(["sh", "-c", f"cat '{mark}'; echo ran"], 0, mark=str(mark))]
    assert run_alive(words).stdout == b"ran\n" and has_begun(str(mark), NUMBER)
    mark.unlink()
    mark.mkdir()
    done = run_alive(words)
    assert not done.stdout and done.returncode, "what cannot be emptied keeps it from running, which is no success"


def test_a_mark_is_written_over_nothing(tmp_path: Path) -> None:
    victim, mark = tmp_path / "victim", tmp_path / "mark"
    mark.symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_start_mark(str(mark), NUMBER)
    assert not victim.exists()


def test_only_the_number_itself_says_that_nothing_ran(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    assert has_begun(str(mark), NUMBER), "it was removed"
    for text in ("", NUMBER[:-1], f"{NUMBER}0", f"{NUMBER}\n"):
        mark.write_text(text)
        assert has_begun(str(mark), NUMBER), text
    (tmp_path / "own").write_text(NUMBER)
    mark.unlink()
    mark.symlink_to(tmp_path / "own")
    assert has_begun(str(mark), NUMBER), "a link"
    mark.unlink()
    os.mkfifo(mark)
    assert has_begun(str(mark), NUMBER), "nobody waits for a pipe"


@pytest.mark.parametrize(
    ("line", "image"),
    [
        ("ch-run[1]: error: can't execve(2): /bin/sh: No such file or directory", True),
        ('FATAL:   "/bin/sh": executable file not found in $PATH', True),
        ("exec container process `/bin/sh`: Exec format error", True),
        ('docker: Error response from daemon: failed to create task: exec: "/bin/sh": permission denied', True),
        ("ch-run[1]: error: can't bind: destination not found: /cache/img/x/etc/group (ch_core.c:111)", True),
        ("ch-run[1]: error: can't open: /ch/environment: No such file or directory (ch_misc.c:159 2)", True),
        ('Error: runc: error mounting "/tmp" to rootfs at "/bin/x": mount /tmp:/bin/x: not a directory', True),
        ("ch-run[1]: error: can't bind: source not found: /cache/data (ch_core.c:104)", False),
        ("ch-run[1]: error: can't stat: /cache/img/x: No such file or directory (ch_core.c:255 2)", False),
        ("/bin/sh: 1: crun.real: not found", False),
        ("/bin/sh: line 1: /usr/bin/crun: No such file or directory", False),
        ("docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", False),
        ("Error: statfs /cache/data: no such file or directory", False),
        ("Error: error creating container storage: mkdir /var/lib/containers: permission denied", False),
    ],
)
def test_what_runtimes_say_of_an_image_and_of_the_machine(line: str, image: bool) -> None:
    assert is_image_at_fault(["before", line, "Run 'docker run --help' for more information"]) is image


def test_the_line_of_the_error_is_quoted() -> None:
    said = [
        "monkey: a note",
        "ch-run[7]: warning",
        'time="…" level=error msg="Removing"',
        "Error: the cause",
        "See help",
    ]
    assert quote_runtime("podman", said) == "Error: the cause"
    assert quote_runtime("docker", said) == "See help"
    assert quote_runtime("podman", ["monkey: a note", ""]) == "it said nothing"
    long = quote_runtime("podman", [f"Error: {'x' * 500} the end"])
    assert len(long) == 300 and long.endswith("the end") and long.startswith("Error: x")


def test_jobs_rest_for_a_minute_and_twice_as_long_after_each_further_fault() -> None:
    now, pauses = 0.0, list[float]()
    faults = RuntimeFaults(lambda: now)
    assert faults.find_rest(TRAIN) == faults.find_lack(TRAIN) == ""
    for _ in range(7):
        faults.note(TRAIN, "no containers here")
        faults.note(TRAIN, "of a job that was begun beside it")
        began = now
        while why := faults.find_rest(TRAIN) or faults.find_lack(TRAIN):
            assert "no containers here; it is tried again after" in why
            now += 1.0
        pauses.append(now - began)
    assert pauses == [60, 120, 240, 480, 960, 960, 960]
    now += 3600.0
    faults.note(TRAIN, "long after")
    assert "after 1m" in faults.find_rest(TRAIN), "the first again"


def test_others_need_not_wait_after_the_second_fault_alone() -> None:
    now = 0.0
    faults = RuntimeFaults(lambda: now)
    faults.note(TRAIN, "why")
    assert faults.find_rest(TRAIN) and not faults.find_lack(TRAIN)
    now = 60.0
    faults.note(TRAIN, "why")
    assert faults.find_lack(TRAIN) and not faults.find_rest(TRAIN)
    assert not faults.find_lack(OTHER) and not faults.find_rest(OTHER), "what asks for other resources is tried"


def test_a_container_that_began_after_a_fault_ends_the_pauses() -> None:
    now = 0.0
    faults = RuntimeFaults(lambda: now)
    before = faults.count
    faults.note(TRAIN, "why")
    faults.note_begun(TRAIN, before)
    assert faults.find_rest(TRAIN), "it was asked for before"
    now = 60.0
    after = faults.count
    faults.note_begun(OTHER, after)
    faults.note_begun(TRAIN, after)
    faults.note(TRAIN, "why")
    assert faults.find_rest(TRAIN), "the first again"

"""Whatever is printed, and in whatever pieces, no runner of CI finds a command in it; nothing else changes."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from monkey.cli.terminal.runner_output import InertOutput
from tests.forges.runner_words import find_runner_commands

COMMANDS = [
    "::error title=x::approved",
    " \t::add-mask::e",
    "\u00a0\u3000\u2028::stop-commands::t",
    "\ufeff::set-output name=digest::ffff",
    "lr=##[add-mask]e",
    "###[set-output name=digest;]ffff",
    "a\r::warning::x",
    "::endgroup::",
    "##[##[error]x]",
    "::a::\n::error::b",
    "section_start:1:x[collapsed=true]\r\x1b[0Khead",
    "\x1b[0Ksection_end:1:x\r\x1b[0K",
]
HARMLESS = [
    "std::vector",
    "a::b::c",
    "# [x]",
    "## heading",
    "\r\x1b[K",
    "::",
    "é::error::x",
    "section_start:1:x",
    "\x1b[0m",
]


def write(path: Path, pieces: list[bytes]) -> bytes:
    """Write the pieces one by one, and return what is there then."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with InertOutput(descriptor, "wb", closefd=False) as output:
        for piece in pieces:
            assert output.write(piece) == len(piece)
    os.close(descriptor)
    return path.read_bytes()


@pytest.mark.parametrize("text", COMMANDS)
def test_no_command_is_written_however_it_is_cut(tmp_path: Path, text: str) -> None:
    data = f"{text}\n".encode()
    assert find_runner_commands(data), "a runner obeys it"
    whole = write(tmp_path / "out", [data])
    for first, second in product(range(len(data) + 1), repeat=2):
        pieces = [data[:first], data[first : max(first, second)], data[max(first, second) :]]
        assert write(tmp_path / "out", pieces) == whole
    assert not find_runner_commands(whole)
    # Blanks stand in it, and nothing is lost.
    assert whole.replace(b" ", b"") == data.replace(b" ", b"")


def test_what_is_no_command_stays_as_it_is(tmp_path: Path) -> None:
    data = "".join(f"x {text} ::y\n" for text in HARMLESS).encode()
    assert write(tmp_path / "out", [data[at : at + 1] for at in range(len(data))]) == data


def test_pieces_of_commands_make_no_command(tmp_path: Path) -> None:
    parts = [b"::", b":", b"#", b"##", b"[error]", b"error::", b"\n", b"\r", b" ", b"\x1b[0K", b"section_end:1:x"]
    for pieces in product(parts, repeat=4):
        assert not find_runner_commands(write(tmp_path / "out", list(pieces)))


def test_a_line_of_blanks_costs_no_memory(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    with InertOutput(descriptor, "wb", closefd=False) as output:
        for _ in range(1000):
            output.write(b" " * 10_000)
            assert len(output._before) < 10
        output.write(b"::error::x\n")
    os.close(descriptor)
    assert (tmp_path / "out").read_bytes().endswith(b" : :error::x\n")


#: A verb that there is not: the error names it.
PROGRAM = "from monkey.cli.main import main; main(['##[add-mask]e'])"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        *((name, 0) for name in ("CI", "GITHUB_ACTIONS", "GITEA_ACTIONS", "FORGEJO_ACTIONS", "GITLAB_CI")),
        ("OTHER", 1),
    ],
)
def test_every_runner_reads_text_alone(name: str, found: int) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], env={**os.environ, name: "1"}, capture_output=True)
    assert b"[add-mask]e" in done.stderr
    assert len(find_runner_commands(done.stderr)) == found


def test_a_file_gets_the_text_as_it_is(tmp_path: Path) -> None:
    with (tmp_path / "err").open("wb") as file:
        subprocess.run([sys.executable, "-c", PROGRAM], env={**os.environ, "CI": "1"}, stderr=file)
    assert b"##[add-mask]e" in (tmp_path / "err").read_bytes()

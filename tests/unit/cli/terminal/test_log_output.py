"""Logs on their way out: bytes into a pipe, nothing that steers onto a terminal, no two jobs in one line."""

from __future__ import annotations

import io

from monkey.cli.terminal.log_output import _MAX_LINE_BYTES, LogOutput


def sunk(*chunks: tuple[str, bytes], prefixed: bool, raw: bool) -> bytes:
    out = io.BytesIO()
    sink = LogOutput(out, prefixed=prefixed, raw=raw)
    for job, data in chunks:
        sink.write(job, data)
    sink.close()
    return out.getvalue()


def test_pipe_takes_a_job_s_log_byte_for_byte() -> None:
    wild = b"\xff\x00\x1b[2J\r10%\r\nno newline"
    assert sunk(("a" * 16, wild[:5]), ("a" * 16, wild[5:]), prefixed=False, raw=True) == wild


def test_terminal_gets_nothing_that_steers_it_even_cut_in_two() -> None:
    got = sunk(("a" * 16, b"x\x1b[3"), ("a" * 16, b"1mred\xff\n\x1b]0;title"), prefixed=False, raw=False)
    assert got == "xred\ufffd\n".encode() + b"\n"


def test_endless_line_is_broken_instead_of_kept() -> None:
    out = io.BytesIO()
    sink = LogOutput(out, prefixed=True, raw=True)
    for _ in range(5):
        sink.write("a" * 16, b"x" * (_MAX_LINE_BYTES // 2))
    assert out.tell() > _MAX_LINE_BYTES
    sink.close()
    lines = out.getvalue().splitlines()
    assert len(lines) == 2 and sum(line.count(b"x") for line in lines) == 5 * (_MAX_LINE_BYTES // 2)


def test_lines_of_jobs_stay_whole_and_say_whose_they_are() -> None:
    got = sunk(
        ("a" * 16, b"one "), ("b" * 16, b"two\n"), ("a" * 16, b"three\n"), ("b" * 16, b"end"), prefixed=True, raw=True
    )
    assert got.decode().splitlines() == ["bbbbbbbb │ two", "aaaaaaaa │ one three", "bbbbbbbb │ end"]

"""What is shipped of a growing log with a limit: the first half, then of the rest no more than the last half so far."""

from __future__ import annotations

from pathlib import Path

from monkey.protocol.record.shipment import LOG, Piece, name_limited_log
from monkey_agent.logs.job_log import LogCursor
from monkey_agent.uploads.metric_files import MetricFiles
from monkey_agent.uploads.unshipped_files import UnshippedFiles

LIMIT, HALF, MANY = 2 << 20, 1 << 20, 1 << 30


def take_all(files: UnshippedFiles) -> list[Piece]:
    """Take as often as something comes."""
    taken: list[Piece] = []
    while pieces := list(files.take_log(MANY)):
        taken += pieces
    return taken


def test_of_a_log_with_a_limit_the_halves_are_shipped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written = b"".join(b"%09d\n" % i for i in range(1_000_000))
    path.write_bytes(written[: HALF + 5])
    files = UnshippedFiles("a", 1, LogCursor(str(path)), MetricFiles(str(tmp_path)), LIMIT)
    assert take_all(files) == [
        Piece("a", 1, LOG, 0, written[:HALF]),
        Piece("a", 1, name_limited_log(LIMIT), HALF, written[HALF : HALF + 5]),
    ]
    # It writes slowly: nothing is left out.
    size = HALF + 5
    for _ in range(20):
        path.write_bytes(written[: size + 100_000])
        assert b"".join(piece.data for piece in take_all(files)) == written[size : size + 100_000]
        size += 100_000
    # It writes more at once than would be kept.
    path.write_bytes(written)
    taken = take_all(files)
    assert b"".join(piece.data for piece in taken) == written[-HALF:]
    assert taken[0].at == len(written) - HALF
    assert all(len(piece.data) <= HALF // 8 for piece in taken), "so little more than a half is ever in the store"


def test_without_a_limit_all_is_shipped_under_one_name(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(bytes(3 * LIMIT))
    files = UnshippedFiles("a", 1, LogCursor(str(path)), MetricFiles(str(tmp_path)))
    assert take_all(files) == [Piece("a", 1, LOG, 0, bytes(3 * LIMIT))]

"""The last lines of a log that a failure keeps."""

from __future__ import annotations

from pathlib import Path

from monkey.store.memory import MemoryStore
from monkey_agent.logs.job_log import AttemptLog


def tail(path: Path, written: str) -> list[str]:
    path.write_text(written)
    return AttemptLog(MemoryStore(), "log/", str(path)).tail()


def test_of_a_progress_bar_its_last_state_is_kept(tmp_path: Path) -> None:
    bar = "".join(f"\rTraining: {share}%|{'#' * 40}" for share in range(101))
    assert tail(tmp_path / "log", f"begin\n{bar}\n\x1b[31mOSError\x1b[0m\n") == [
        "begin",
        f"Training: 100%|{'#' * 40}",
        "OSError",
    ]
    # It alone is longer than what is looked at, and its last state was cut short.
    assert tail(tmp_path / "log", f"begin\n{bar * 50}\rTrain") == [f"Training: 100%|{'#' * 40}"]

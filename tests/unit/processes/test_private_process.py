"""Which variables helpers get."""

from __future__ import annotations

from monkey.processes.private_process import select_needed_variables


def test_a_helper_gets_what_it_needs_and_no_secret() -> None:
    needed = {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "XDG_STATE_HOME": "/s", "LD_LIBRARY_PATH": "/l"}
    others = {"AWS_SECRET_ACCESS_KEY": "s", "WANDB_API_KEY": "s", "PYTHON_TOKEN": "s", "MONKEY_WITHHELD": "A"}
    assert select_needed_variables({**needed, **others}) == needed

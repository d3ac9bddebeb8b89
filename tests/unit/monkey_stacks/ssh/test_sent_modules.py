"""The modules that are sent to a host or a login node: a bare Python finds all that they import among them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from monkey_stacks.slurm import login_node
from monkey_stacks.ssh import connection


@pytest.mark.parametrize("modules", [connection.HOST_MODULES, login_node.LOGIN_MODULES], ids=["host", "login node"])
def test_what_is_sent_begins_without_what_is_installed_here(modules: tuple[str, ...]) -> None:
    begin = connection.BEGIN.replace("module.serve_operation(*e[2:])", "print(module.__name__)")
    message = json.dumps([begin, connection.read_modules(modules)]).encode()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", connection.READ],
        input=b"%d\n%s" % (len(message), message), capture_output=True,
    )  # fmt: skip
    assert (done.stdout.decode().strip(), done.stderr.decode()) == (modules[-1], "")

"""The login node: operations on it by OpenSSH, or in this process where this machine is one."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from monkey.errors import FleetError
from monkey.spec.project.ssh_host import parse_ssh_host
from monkey_stacks.slurm import slurm_errors
from monkey_stacks.slurm.remote import login_main
from monkey_stacks.ssh.connection import LONG, SHORT, HostConnection

#: The modules that an operation is made of, in an order in which each finds what it imports.
LOGIN_MODULES = (
    *("monkey.untrusted_files", "monkey.removal", "monkey.fleet.agent_state", "monkey.fleet.gpus"),
    *("monkey_stacks.ssh.remote.paths", "monkey_stacks.ssh.remote.host_facts"),
    *("monkey_stacks.bundle.unpack", "monkey_stacks.ssh.remote.bundles"),
    *("monkey_stacks.slurm.remote.pilot_directory", "monkey_stacks.slurm.remote.slurm_programs"),
    "monkey_stacks.slurm.remote.cluster_inventory",
    "monkey_stacks.slurm.remote.login_main",
)
#: Operations that send much or wait for long.
_LONG_ONES = ("install", "remove")


class LoginNode:
    """A login node that is asked; each question is one connection at most."""

    def __init__(self, provider: str, login: str) -> None:
        """Ask `login`, as OpenSSH's client knows it; "" for this machine. `provider` names it in errors."""
        self._provider, self._login = provider, login

    @property
    def called(self) -> str:
        """How people name it."""
        return self._login or "this machine"

    def ask(self, operation: str, asked: dict[str, Any]) -> Any:
        """Do an operation of `login_main`, and return its value. Raises HostAway, FleetError."""
        return self.ask_all([(operation, asked, None)])

    def ask_all(self, questions: list[tuple[str, dict[str, Any], Path | None]]) -> Any:
        """Do several over one connection; return the last one's value. Each: operation, request, payload.

        Raises HostAway, FleetError.
        """
        if not self._login:
            return [self._judge(_do_here(*each), each[0]) for each in questions][-1]
        with HostConnection(parse_ssh_host(self._login), LOGIN_MODULES) as there:
            return [
                self._judge(there.ask(operation, asked, payload, LONG if operation in _LONG_ONES else SHORT), operation)
                for operation, asked, payload in questions
            ][-1]

    def _judge(self, reply: dict[str, Any], operation: str) -> Any:
        if "refused" in reply:
            raise slurm_errors.make_refusal(self._provider, self.called, reply)
        return reply["value"]


def _do_here(operation: str, asked: dict[str, Any], payload: Path | None) -> dict[str, Any]:
    try:
        with payload.open("rb") if payload is not None else io.BytesIO() as stream:
            return login_main.run_operation(operation, asked, stream)
    except OSError as exc:
        raise FleetError(f"{payload}: {exc.strerror}") from exc

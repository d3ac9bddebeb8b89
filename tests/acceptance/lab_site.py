"""A project whose machines are hosts of the lab, made by `monkey apply` alone: the real command, the real Pulumi."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import services
from tests.acceptance.ledger import whole_lines
from tests.acceptance.shop import Shop, until
from tests.acceptance.site import LEDGER, Site, left_on
from tests.hosts import Lab, Machine

#: In the command line of what `monkey_stacks.ssh` runs on a host for as long as a connection to it stands.
FAR_END = "exec(e[0])"

#: Notes that it was called, and how; then it is Pulumi.
_COUNTED = '#!/bin/sh\necho "$*" >> "{calls}"\nexec "{pulumi}" "$@"\n'
#: What audit says where all is as it was written down.
NOTHING_ASTRAY = "Nothing is astray"


class LabSite(Site):
    """A project, its monkey.yaml, and all that monkey said in it."""

    def __init__(self, lab: Lab, shop: Shop, number: int, base: Path) -> None:
        """Make it; programs lie below `base`."""
        super().__init__(lab, shop, number)
        self.store = lab("store")[0].home / "stores" / str(number)
        #: All that was printed.
        self.said = ""
        self._calls = base / "pulumi-calls"
        program = base / "pulumi" / "pulumi"
        program.parent.mkdir()
        program.write_text(_COUNTED.format(calls=self._calls, pulumi=self._pulumi / "pulumi"))
        program.chmod(0o755)
        #: The PATH without Pulumi.
        without = (each for each in shop.env["PATH"].split(os.pathsep) if not Path(each, "pulumi").exists())
        self.bare = os.pathsep.join(without)
        # What hosts are sent is built once.
        shop.env["XDG_CACHE_HOME"] = os.environ["XDG_CACHE_HOME"]
        shop.env["PATH"] = f"{program.parent}:{self._pulumi}:{self.bare}"

    @property
    def _pulumi(self) -> Path:
        found = services.pulumi_directory()
        assert found is not None
        return found

    def providers(
        self,
        *hosts: str,
        store: str | None = None,
        more: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
        **of: Any,
    ) -> None:
        """Write monkey.yaml: the fleet `lab` of these hosts, with settings `of` it, `more` providers, and `metrics`."""
        fleets = {**({"lab": {"type": "ssh", "hosts": hosts, **of}} if hosts else {}), **(more or {})}
        said = {"project": "shop", "store": store or self.url, "providers": fleets}
        said |= {"metrics": metrics} if metrics else {}
        (self.shop.root / "monkey.yaml").write_text(json.dumps(said))

    def sweep(self, text: str = "", *, jobs: int, seconds: float = 0.05, name: str = "sweep") -> None:
        """Write a spec for the fleet, whose jobs keep the ledger where they run."""
        said = {line.partition(":")[0] for line in text.splitlines()}
        command = f"command: [python3, job.py, '{LEDGER}', '{seconds}', '{{i}}']\n" if "command" not in said else ""
        self.shop.spec(command + ("" if "provider" in said else "provider: lab\n") + text, jobs=jobs, name=name)

    def run(self, *arguments: str, code: int | None = 0) -> str:
        """Run monkey to its end, and return what it printed."""
        done: subprocess.CompletedProcess[str] = self.shop.run(*arguments, code=code)
        self.said += done.stdout + done.stderr
        return done.stdout + done.stderr

    def apply(self, *arguments: str, code: int | None = 0) -> str:
        """Apply without a look at how it goes on."""
        return self.run("apply", "-d", *arguments, code=code)

    def machines(self) -> list[tuple[str, str, str, str]]:
        """Return operation, fleet and machine, why, and trouble of each machine that a plan would change."""
        found = self.shop.json("plan")["fleets"]
        return [
            (each["op"], f"{fleet['fleet']}/{each['machine']}", each["why"], each["trouble"])
            for fleet in found
            for each in fleet["machines"]
        ]

    @property
    def calls(self) -> int:
        """How often Pulumi was started so far."""
        return len(whole_lines(self._calls))

    @property
    def leftovers(self) -> list[int]:
        """Processes of Pulumi's here, and of its plugins."""
        return [*self.shop.processes("pulumi"), *self.shop.processes("engine_supervisor.py")]

    def audit(self) -> None:
        """Have nothing astray, by monkey's own word."""
        assert NOTHING_ASTRAY in self.run("audit")

    def left(self, *machines: Machine) -> dict[str, dict[str, Any]]:
        """Return all that is left on these hosts and on the store's, as seen from outside.

        A connection's far end ends a moment after the near one, which no longer waits for it.
        """
        seen = [*machines, *self.lab("store")]
        until(lambda: not any(FAR_END in machine.processes() for machine in seen), "connections end at the hosts", 15)
        return {machine.name: left_on(machine) for machine in seen}


def holding(secret: str, directory: Path) -> list[str]:
    """Return the files below a directory in which the secret is."""
    found = subprocess.run(["grep", "-rlaF", "-e", secret, str(directory)], capture_output=True, text=True)
    assert found.returncode in (0, 1), found.stderr
    return found.stdout.splitlines()


def lines(said: str, beginning: str) -> Sequence[str]:
    """Return the lines of what was printed that begin so, after marks and spaces."""
    return [line.strip() for line in said.splitlines() if re.match(rf"[\s+~!@*-]*{re.escape(beginning)}", line)]

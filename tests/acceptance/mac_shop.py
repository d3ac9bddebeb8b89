"""A user's project on a Mac that is played here (`tests/played_mac`), and `monkey` run on it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.acceptance.shop import PATIENCE, Shop
from tests.played_mac.machine import PlayedMac

#: How long $TMPDIR is on a Mac: /var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T.
_TMPDIR = 49


class MacShop(Shop):
    """A project, whose verbs, agents and jobs run on the Mac; `tmp` stands for its temporary directory."""

    def __init__(self, base: Path, mac: PlayedMac, tmp: Path) -> None:
        """Make it below `base`."""
        super().__init__(base)
        self.mac = mac
        folder = tmp / "T".rjust(_TMPDIR - len(f"{tmp}/"), "f")
        folder.mkdir()
        self.env |= {"PATH": mac.path, "TMPDIR": str(folder)}

    def run(
        self, *arguments: str, code: int | None = 0, patience: float = PATIENCE
    ) -> subprocess.CompletedProcess[str]:
        """Run monkey to its end, in an interpreter of its own; `code`: see `Shop.run`."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=patience)
        told = f"monkey {' '.join(arguments)}: exit code {process.returncode}\n{out}\n{err}\n{self.agent_log}"
        assert code is None or process.returncode == code, told
        assert "Traceback" not in told, told
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return self.mac.wrap([self.mac.python, *super()._command(arguments)[1:]])

    @property
    def played(self) -> list[str]:
        """The command lines of all Pythons that this Mac has started."""
        return self.mac.log.read_text().splitlines()

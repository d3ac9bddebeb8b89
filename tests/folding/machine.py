"""A machine with a kernel of its own (user-mode Linux), whose disk does not tell names apart as ours does: HFS+.

It boots in two seconds, runs one command, and goes down. It sees the host's files read-only.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from tests.folding.hfsplus import write_disk
from tests.own_kernel import PROJECT, build_preload

HERE = Path(__file__).parent
#: Seconds within which it must have booted, run the command, and gone down.
PATIENCE = 500.0


def available() -> bool:
    """Say whether such a machine can be started here."""
    return all(map(shutil.which, ("linux.uml", "gcc")))


def run_on_disk(place: Path, command: list[str | Path]) -> str:
    """Run a command in the checkout, with FOLDING_DISK in its environment; return what it printed.

    The machine's files lie in `place`, where the command may write; it sees that directory as /run/dir.
    """
    (place / "tmp").mkdir()
    for source in (HERE / "machine_init.sh", PROJECT / "tests/nfs/load_modules.py"):
        shutil.copy(source, place / source.name)
    (place / "command").write_text(f"cd {shlex.quote(str(PROJECT))} && exec {shlex.join(map(str, command))}\n")
    write_disk(place / "disk")
    words = f"mem=768M uml_dir={place}/tmp/ root=/dev/root rootfstype=hostfs rootflags=/ ro quiet con=null"
    ours = ["con0=null,fd:1", f"ubd0={place}/disk", f"init={place}/machine_init.sh", f"dir={place}"]
    with (place / "console").open("wb") as console:
        subprocess.run(
            ["linux.uml", *words.split(), *ours],
            env={**os.environ, "TMPDIR": f"{place}/tmp", "LD_PRELOAD": str(build_preload(place))},
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            timeout=PATIENCE,
        )
    said = (place / "console").read_text(errors="replace")
    assert "MOUNTED" in said, said[-2000:]
    return (place / "output").read_text(errors="replace")

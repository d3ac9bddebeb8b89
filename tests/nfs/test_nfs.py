"""A store on NFS, seen from two kernels: what one machine writes, the other one sees at once.

The long cases (a machine killed, cut off, the server away, answers lost) are in `tests/nfs/campaign.py`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.nfs.project import NfsProject
from tests.nfs.site import NfsSite, start_site

#: An NFSv3 mount on which living agents looked dead.
UNSAFE = "vers=3,nolock,port=2049,mountport=20048,nocto,actimeo=120"
#: Seconds within which an order arrives. It took up to 54 s while the client's cache was believed, and takes one.
SOON = 15.0


@pytest.mark.slow
@pytest.mark.needs("nfs")
def test_one_machine_sees_what_the_other_wrote(tmp_path: Path) -> None:
    with start_site(tmp_path / "nfs") as site:
        project = NfsProject(site)
        _follow_job(project)
        _cancel_job(project)
        _refuse_mount(site)
        _interrupt_verb(site)


def _follow_job(project: NfsProject) -> None:
    """Look at a job of m2 from m1 while it runs, so that m1 remembers what is missing, and when it is over."""
    project.write_spec("one", 2)
    project.hold.touch()
    started = project.start_verb("m2", "apply", "-y", "-d")
    job = project.wait_for_job()
    following = project.start_verb("m1", "logs", "-f", job)
    project.verb("m1", "fetch", job, code=None)
    assert "line last" not in project.verb("m1", "logs", job)
    started()
    project.hold.unlink()
    project.wait_for_end(job)
    lines = [*(f"line {number}" for number in range(8)), "line last"]
    assert [line for line in following()[0].splitlines() if line.startswith("line")] == lines
    assert "Fetched 1 file" in project.verb("m1", "fetch", job)
    assert project.read_status("m1", "one") == {"succeeded": 1}


def _cancel_job(project: NfsProject) -> None:
    project.write_spec("two", 600)
    started = project.start_verb("m2", "apply", "-y", "-d", "specs/two.yaml")
    job = project.wait_for_job()
    started()
    project.verb("m1", "cancel", "two")
    cancelled = time.time()
    assert project.wait_for_silence(job) - cancelled < SOON


def _refuse_mount(site: NfsSite) -> None:
    site.run("m1", f"mkdir /run/v3 && mount -t nfs -o {UNSAFE} 10.99.0.1:{site.export} /run/v3")
    project = NfsProject(site, "/run/v3/store")
    said = project.verb("m1", "doctor", code=1)
    assert "! store: /run/v3/store is not safe as a store" in said
    assert "nocto" in said and "cached for 120 s" in said
    assert "is not safe as a store" in project.verb("m1", "status", code=1)


#: Runs a verb, waits until it hangs in the kernel, and sends it SIGINT.
INTERRUPT = """\
( {verb} ) & verb=$!
hangs() {{ child=$(pgrep -P $verb || echo $verb); grep -q 'State:.D' /proc/$child/status; }}
until hangs && sleep 1 && hangs; do sleep .2; kill -0 $verb || exit 99; done
kill -INT $child; wait $verb
"""


def _interrupt_verb(site: NfsSite) -> None:
    """Press Ctrl-C while the server is away, and the verb's only thread that runs signal handlers hangs."""
    verb = (
        NfsProject(site)
        .spell_verb("m1", "status")
        .replace(sys.executable, f"env --default-signal=INT {sys.executable}")
    )
    site.kill_server()
    said = site.run("m1", INTERRUPT.format(verb=verb), code=130)
    assert "interrupted; the store at /mnt/store has not answered for" in said
    assert "(NFS mount, server 10.99.0.1)" in said

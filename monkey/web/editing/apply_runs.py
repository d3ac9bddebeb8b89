"""Applies that the page starts: `monkey apply` in processes of their own, which outlive the page and its server."""

from __future__ import annotations

import asyncio
import codecs
import os
import secrets
import subprocess
import sys
import tempfile
from typing import IO, Any

from monkey.apply.world.desired_state import SPECS
from monkey.errors import MonkeyError
from monkey.spec.project.project import Project
from monkey.web.editing.draft_planning import locate_project_file

#: Bytes of output that one request gets.
_PART_BYTES = 64 * 1024


class ApplyRun:
    """One `monkey apply --detach`, bound to the digest of a plan, and what it has said so far."""

    def __init__(self, file: str, process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        """Follow a process that writes to a file."""
        self.id, self.file = secrets.token_hex(8), file
        self._process, self._output = process, output

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    def serialize(self, at: int = 0) -> dict[str, Any]:
        """Return how it stands, and its output from byte `at` on."""
        code = self.code  # before the output: else what it said last could be missed
        data = os.pread(self._output.fileno(), _PART_BYTES, at)
        left = os.fstat(self._output.fileno()).st_size - at - len(data)
        running = code is None or left > 0
        # A character may be cut in two here: the next part begins with it.
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(data, final=not running)
        following = at + len(data) - len(decoder.getstate()[0])
        return {"id": self.id, "file": self.file, "code": None if running else code, "text": text, "next": following}


class ApplyRuns:
    """The applies of one server: one at a time, the newest kept for pages that come back."""

    def __init__(self, project: Project) -> None:
        """Have started none yet."""
        self._project = project
        self.newest: ApplyRun | None = None

    async def start_apply(self, file: str, digest: str) -> ApplyRun:
        """Apply a spec file if its plan has the digest. Raises MonkeyError while another apply runs."""
        if self.newest is not None and self.newest.code is None:
            raise MonkeyError(f"{SPECS}/{self.newest.file} is being applied", hint="wait until that has ended")
        self.newest = await asyncio.to_thread(self._start, file, digest)
        return self.newest

    def _start(self, file: str, digest: str) -> ApplyRun:
        project_file = locate_project_file(self._project)
        options = ["--project-file", project_file] if project_file else []
        # A file, not a pipe: an apply must be able to write when its server is gone. -u: lines come as they are said.
        # Closed with the last reference: pages may ask until the next apply.
        output = tempfile.TemporaryFile()  # noqa: SIM115
        command = ["apply", "--detach", "--expect", digest, *options, f"{SPECS}/{file}"]
        process = subprocess.Popen(
            [sys.executable, "-u", "-P", "-m", "monkey.cli.main", *command],
            cwd=self._project.root,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        return ApplyRun(file, process, output)

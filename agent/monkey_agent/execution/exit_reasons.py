"""What to say about how a process ended."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from monkey.metrics.usage import MEMORY_EXCEEDED
from monkey.plan.sizes import format_size, suggest_memory
from monkey.spec.yaml.units import format_duration
from monkey_agent.execution.workspace import Workspace
from monkey_agent.local_files import explain_os_error, is_disk_full
from monkey_agent.supervisor.process import ProcessExit

#: Exit codes of shells that ran nothing themselves.
_SHELL = {126: "the shell found the command, but could not run it", 127: "the shell did not find the command"}
#: The last words of a program that sees no GPU: of PyTorch, of CUDA, of XLA (JAX), Lightning and TensorFlow. TensorFlow
#: and JAX also log CUDA's words, with its name for the error, before they continue on the CPU.
_SAW_NO_GPU = re.compile(
    r"No CUDA GPUs are available|torch\.cuda\.is_available\(\) is False"
    r"|(?<!CUDA_ERROR_NO_DEVICE: )no CUDA-capable device is detected|Error: .*No visible GPU devices"
    r"|No supported gpu backend found|assigned to /device:GPU:\d+ but available devices are"
)


def spell_exit_code(code: int) -> int:
    """Return the code as a shell would say it: 128 + signal where a signal ended it."""
    return 128 - code if code < 0 else code


def explain_exit(how: ProcessExit, asked: int = 0, space: Workspace | None = None, log_tail: Sequence[str] = ()) -> str:
    """Return why an attempt failed that ran and ended by itself; "" for exit code 0.

    `asked`: the bytes of memory that it might hold, 0 for any number. `space`: where it ran, None where that is gone;
    `log_tail`: the last lines of its log.
    """
    if said := _explain_image(how, space, log_tail):
        return said
    said = _explain_code(how, asked)
    return said + _explain_full_disk(space.root) if said and space and not how.over else said


def _explain_full_disk(root: str) -> str:
    """Return what a full disk adds to the reason of a failure; "" where there is room. `root`: its workspace."""
    if not is_disk_full(root):
        return ""
    place = root.rpartition("/")[0]
    return f", while the disk of this machine was full: {place}" + _hint("make room there, then run `monkey retry`")


def _explain_code(how: ProcessExit, asked: int) -> str:
    if how.over:
        held = f"{format_size(asked)} of memory: it held {format_size(how.over)} when it was ended"
        more = (
            f"set `resources: {{memory: {suggest_memory(max(asked, how.over))}}}`, and apply; then run `monkey retry`"
        )
        return f"{MEMORY_EXCEEDED} {held}{_hint(more)}"
    if how.code == 0:
        return ""
    if how.code < 0:
        return f"killed by {_signal(-how.code)}" + (_memory(how) if -how.code == signal.SIGKILL else "")
    text = f"exit code {how.code}"
    if how.code in _SHELL:
        return f"{text} ({_SHELL[how.code]})"
    if how.code == 128 + signal.SIGKILL:
        return text + _memory(how)
    if how.code == 128 + signal.SIGPIPE:
        return f"{text} (SIGPIPE)" + _hint("a program such as `head` closed a pipe early: `| sed -n 1p` reads on")
    if how.code > 128 and _signal(how.code - 128).startswith("SIG"):
        return f"{text} ({_signal(how.code - 128)})"
    return text


def suggest_gpus(log_tail: Sequence[str]) -> str:
    """Return the hint for a job that asked for no GPU, and whose log ends with the error that it saw none; else ""."""
    if not any(map(_SAW_NO_GPU.search, log_tail)):
        return ""
    return _hint("a job sees the GPUs that it asks for: set `resources: {gpus: 1}`, and apply; then run `monkey retry`")


def _explain_image(how: ProcessExit, space: Workspace | None, log_tail: Sequence[str]) -> str:
    """Return why the image of an attempt could not be run; "" where it could, or it has none."""
    container = space.hold.container if space and space.hold else None
    return container.explain_image(space.container_mark, how, log_tail) if space and container else ""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _memory(how: ProcessExit) -> str:
    """Return the hint for a SIGKILL that monkey did not send."""
    if not how.peak:
        return " (out of memory?)"
    peak = how.peak * (1 if sys.platform == "darwin" else 1024)
    return f" (out of memory? its largest process had used {format_size(peak)})"


def describe_lingering(how: ProcessExit, grace: float) -> str:
    """Say how many processes of an attempt were ended when its command had ended, and whether they still worked."""
    said = f"the command left processes running ({how.lingered}), which were ended"
    if not how.cut:
        return said
    hint = _hint("have the command wait for them, or set a longer `grace`")
    return f"{said} while they still worked, after {format_duration(grace)}{hint}"


def explain_failed_start(how: ProcessExit, program: str, work: str) -> str:
    """Return why a program could not be started."""
    if how.code == errno.ENOENT and how.file == work:
        return "its working directory vanished"
    if how.code == errno.ENOENT:
        return _not_found(program, work)
    if how.code == errno.EACCES:
        return f"{how.file or program} is not executable" + _hint("chmod +x it, or name its interpreter")
    if how.code == errno.ENOEXEC:
        return f"{program} is no program" + _hint("a script begins with #! and its interpreter, or names it: sh FILE")
    if how.code == errno.E2BIG:
        return "its command line and environment are too long" + _hint("pass large values by a file")
    if how.code in (errno.EAGAIN, errno.ENOMEM):
        return f"this machine has no room for another process ({os.strerror(how.code)})"
    if not how.code:
        return f"it could not be started: {how.file}"
    return explain_os_error(OSError(how.code, os.strerror(how.code), how.file))


def _not_found(program: str, work: str) -> str:
    path = Path(work, program)
    if "/" in program and path.is_file():
        with path.open("rb") as file:
            line = file.readline(200).decode(errors="replace")
        first = line.strip()
        if line.endswith("\r\n"):
            hint = f"`sed -i 's/\\r$//' {program}`; `*.sh text eol=lf` in .gitattributes keeps it so"
            return f"the lines of {program} end as on Windows, so it has no interpreter {first}" + _hint(hint)
        return f"the interpreter of {program} is missing: {first}"
    if "/" in program:
        return f"command not found: {program}" + _hint("it must be part of the code snapshot, or an absolute path")
    more = "python3, or `environment:` in the spec" if program == "python" else "install it on this machine"
    return f"command not found: {program}" + _hint(more)


def _hint(text: str) -> str:
    return f" (hint: {text})"

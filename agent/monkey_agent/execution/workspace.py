# ruff: noqa: PTH101, PTH102, PTH104, PTH114, PTH115, PTH116, PTH208
# Paths are plain strings here: pathlib costs as much as the system calls.
"""The directories of an attempt. They are made once and handed from job to job: that costs a tenth of making them."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from monkey.metrics.usage import USAGE_FILE
from monkey.removal import remove_file, remove_tree
from monkey.spec.job.job_table import nest_parameters
from monkey.spec.sweep.sweep_names import parse_check_name
from monkey.untrusted_files import hold_below, move_entry, open_directory, open_entry
from monkey_agent.execution.temporary_directories import TemporaryDirectories
from monkey_agent.local_files import explain_os_error
from monkey_agent.receiving.metric_sockets import SOCKET_FILE, MetricSockets

if TYPE_CHECKING:
    from monkey_agent.execution.attempt_resources import AttemptResources
    from monkey_agent.logs.masking import LogMask
    from monkey_agent.ports import Attempt
    from monkey_agent.uploads.attempt_history import AttemptHistory

#: Workspaces that are kept for the next jobs.
SPARE = 64
#: The directory of the state with workspaces that hold what could not be read, and how many it has at most.
_UNREAD, _MOST_UNREAD = "unread", 16
#: The directory of the state with what is to be removed.
_TRASH = "trash"
#: Names in a workspace.
DIRECTORIES = ("work", "outputs", "metrics", "checkpoint")
LOG_FILE = "log"
#: In a workspace: what its container used, and whether that began.
CONTAINER_USAGE_FILE, CONTAINER_MARK_FILE = "container.usage", "container.start"
#: Entries of a directory that are removed at once; more go to the trash with all of the workspace.
_FEW = 64


class Workspace:
    """Where an attempt runs; plain paths.

    Directories are handed out with their time of change set to 0, so that one look says whether anything came in.
    """

    __slots__ = (
        *("checkpoint", "history", "hold", "job", "log", "metrics", "name", "outputs", "root", "samples"),
        *("sockets", "spoilt", "temporary", "unread", "work"),
    )

    def __init__(self, job: str, root: str) -> None:
        """Name what lies below `root`."""
        self.job, self.root, self.name = job, root, root.rpartition("/")[2]
        self.work, self.outputs, self.metrics, self.checkpoint = self.directories
        #: Holds stdout and stderr.
        self.log = f"{root}/{LOG_FILE}"
        #: Holds what was sampled of its processes; not there for one that was over before.
        self.samples = f"{root}/{USAGE_FILE}"
        #: For its job's temporary files; "" for none of its own.
        self.temporary = ""
        #: What its attempt uses of the machine: given back with it.
        self.hold: AttemptResources | None = None
        #: By which programs send metrics; None for one whose job is over, or that could have none.
        self.sockets: MetricSockets | None = None
        #: What its attempt continues; None for nothing.
        self.history: AttemptHistory | None = None
        #: May somebody still write into it? Then no other attempt gets it.
        self.spoilt = False
        #: Does it hold what could not be read? Then it is the only copy.
        self.unread = False

    @property
    def mask(self) -> LogMask | None:
        """Return what hides its attempt's secrets; None where it has none."""
        return self.hold.mask if self.hold else None

    @property
    def container_mark(self) -> str:
        """The file that says whether its container began."""
        return f"{self.root}/{CONTAINER_MARK_FILE}"

    @property
    def directories(self) -> tuple[str, str, str, str]:
        """The directories whose places its job knows."""
        work, outputs, metrics, checkpoint = DIRECTORIES
        return f"{self.root}/{work}", f"{self.root}/{outputs}", f"{self.root}/{metrics}", f"{self.root}/{checkpoint}"

    def close_sockets(self) -> None:
        """Close its sockets, if it has any."""
        if self.sockets is not None:
            self.sockets.close()
            self.sockets = None

    def keep_unread(self, exc: OSError) -> str:
        """Have it kept when it is given back, as not all in it can be read; return the reason, with its place."""
        self.unread = True
        kept = f"{self.root.rsplit('/', 2)[0]}/{_UNREAD}/{self.name}"
        where = explain_os_error(exc).replace(self.root, kept)
        hint = "copy it from there, and have the job leave what its user can read"
        return f"what it made could not be read: {where} (hint: {hint})"

    def replaced(self) -> str:
        """Say which directory the job replaced, by what, and what to do; "" for none, and for those it removed."""
        places = {
            "the directory above MONKEY_OUTPUT_DIR": self.root,
            "its working directory": self.work,
            "MONKEY_OUTPUT_DIR": self.outputs,
            "MONKEY_METRICS_DIR": self.metrics,
            "MONKEY_CHECKPOINT_DIR": self.checkpoint,
        }
        for name, path in places.items():
            with contextlib.suppress(OSError):
                if not stat.S_ISDIR(os.lstat(path).st_mode):
                    return _replaced(name, path)
        return ""


def _replaced(name: str, path: str) -> str:
    hint = "write into the directory itself"
    if not os.path.islink(path):
        return f"{name} was replaced by what is no directory, so nothing in it is kept (hint: {hint})"
    target = os.fsencode(os.readlink(path)).decode(errors="backslashreplace")
    hint += f", or have your program write to {target} by name"
    return f"{name} was replaced by a link to {target}, so nothing in it is kept (hint: {hint})"


class Workspaces:
    """All attempts of an agent, in `attempts/` of its state directory."""

    def __init__(self, state: Path) -> None:
        """Take over the state directory. What earlier agents left becomes trash."""
        self._state = str(state)
        self._attempts = f"{state}/attempts"
        self._temporary = TemporaryDirectories(state)
        #: Cleared, under the names of those that had them last, with their sockets.
        self._spare: dict[str, MetricSockets | None] = {}
        self._count = 0
        self._taken: set[Workspace] = set()
        #: Was anything discarded since the trash was last emptied?
        with hold_below(state, _TRASH, make=True) as trash:
            self._has_trash = bool(os.listdir(trash))
        self._discard(self._attempts)
        os.mkdir(self._attempts)
        self._mode = os.stat(self._attempts).st_mode
        os.chmod(self._attempts, stat.S_IRWXU)

    def take(self, job: str, k: int) -> Workspace:
        """Return the empty workspace of a new attempt. Raises OSError."""
        with hold_below(self._state, "attempts"):
            space = Workspace(job, f"{self._attempts}/{job}.{k}")
        if space.root in self._spare:
            space.sockets = self._spare.pop(space.root)
        elif self._spare:
            root, space.sockets = self._spare.popitem()
            os.rename(root, space.root)
        else:
            os.mkdir(space.root)
            for path in space.directories:
                os.mkdir(path)
                os.utime(path, ns=(0, 0))
        space.temporary = self._temporary.take()
        self._taken.add(space)
        self._open_sockets(space)
        return space

    @staticmethod
    def _open_sockets(space: Workspace) -> None:
        """Open sockets for a workspace unless it has unused ones; without them, a job runs all the same."""
        if space.sockets is not None and not space.sockets.is_fresh(space.root):
            space.close_sockets()
        if space.sockets is None:
            with contextlib.suppress(OSError):
                space.sockets = MetricSockets(space.root)

    def give(self, space: Workspace) -> None:
        """Take a workspace back."""
        self._taken.discard(space)
        self._temporary.give(space.temporary, spoilt=space.spoilt)
        if space.hold is not None:
            space.hold.close()
            space.hold = None
        try:
            if space.unread:
                self._keep(space)
                return
            if not space.spoilt and len(self._spare) < SPARE and self._reset(space):
                self._spare[space.root], space.sockets = space.sockets, None
                return
        except OSError:
            pass  # the job made something strange of it
        space.close_sockets()
        self._discard(space.root)

    def _keep(self, space: Workspace) -> None:
        """Move a workspace to where it is kept, and discard the oldest of many there. Raises OSError."""
        space.close_sockets()
        above = space.root.split("/")[-2]
        with hold_below(self._state, above) as at, hold_below(self._state, _UNREAD, make=True) as kept:
            move_entry(space.name, space.name, at, kept)
            moved = {name: os.stat(name, dir_fd=kept, follow_symlinks=False).st_ctime for name in os.listdir(kept)}
            for name in sorted(moved, key=moved.__getitem__)[:-_MOST_UNREAD]:
                self._to_trash(name, kept)

    def _reset(self, space: Workspace) -> bool:
        """Make a workspace as good as new; False where that is more work than making one. Raises OSError."""
        root = open_directory(space.root, step=True)
        try:
            if space.sockets is None or not space.sockets.is_fresh(space.root):
                space.close_sockets()
                remove_file(SOCKET_FILE, root)
            return all(self._reset_directory(name, root) for name in DIRECTORIES) and self._reset_files(root)
        finally:
            os.close(root)

    def _reset_directory(self, name: str, root: int) -> bool:
        status = os.stat(name, dir_fd=root, follow_symlinks=False)
        if status.st_mode != self._mode:  # so is a link's, or a file's
            return False
        if status.st_mtime_ns == 0:
            return True
        directory = open_entry(name, root)
        try:
            if self._clear(directory):
                os.utime(directory, ns=(0, 0))
                return True
            return False
        finally:
            os.close(directory)

    def _clear(self, directory: int) -> bool:
        with os.scandir(directory) as found:
            entries = list(found)
        if len(entries) > _FEW:
            return False
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                self._to_trash(entry.name, directory)
            else:
                remove_file(entry.name, directory)
        return True

    @staticmethod
    def _reset_files(root: int) -> bool:
        remove_file(USAGE_FILE, root)
        remove_file(CONTAINER_USAGE_FILE, root)
        remove_file(CONTAINER_MARK_FILE, root)
        log = os.stat(LOG_FILE, dir_fd=root, follow_symlinks=False)
        # Whatever else the job made of it (a pipe, a link) is nothing for the next one to write to.
        if log.st_size or not stat.S_ISREG(log.st_mode) or log.st_nlink > 1 or log.st_mode & 0o600 != 0o600:
            remove_file(LOG_FILE, root)
        return True

    def _discard(self, path: str) -> None:
        """Move a tree to the trash, if it is there; of a link in its place, the link alone goes."""
        above, _, name = path.removeprefix(f"{self._state}/").rpartition("/")
        with contextlib.suppress(OSError), hold_below(self._state, above) as at:
            self._to_trash(name, at)

    def _to_trash(self, name: str, at: int) -> None:
        """Move what is in the directory `at` to the trash. Raises OSError."""
        self._count += 1
        with hold_below(self._state, _TRASH) as trash:
            move_entry(name, f"{time.time_ns()}.{self._count}", at, trash)
        self._has_trash = True

    @property
    def has_trash(self) -> bool:
        """Is there something to be removed?"""
        return self._has_trash or self._temporary.has_trash

    def empty_trash(self) -> None:
        """Remove what was discarded: slow, and to be called in another thread."""
        self._has_trash = False  # first, so that what comes meanwhile is seen the next time
        self._temporary.empty()
        with contextlib.suppress(OSError), hold_below(self._state, _TRASH) as trash:
            for name in os.listdir(trash):
                remove_tree(name, trash)

    @property
    def stuck(self) -> list[str]:
        """What is in the trash, once that was emptied: paths that could not be removed."""
        try:
            with hold_below(self._state, _TRASH) as trash:
                return [f"{self._state}/{_TRASH}/{name}" for name in os.listdir(trash)]
        except OSError:
            return [f"{self._state}/{_TRASH}"]

    def close_sockets(self) -> None:
        """Close all sockets, those that were kept for the next jobs, too."""
        for space in self._taken:
            space.close_sockets()
        for sockets in filter(None, self._spare.values()):
            sockets.close()
        self._spare = dict.fromkeys(self._spare)

    def close(self) -> None:
        """Remove what was kept for the next jobs, and the trash; slow, and to be called in another thread."""
        self.close_sockets()
        for path in self._spare:
            self._discard(path)
        self._spare.clear()
        self.empty_trash()
        self._temporary.close()


def name_tracked_run(attempt: Attempt) -> dict[str, str]:
    """Return variables by which W&B continues one run over all attempts, and MLflow gives their runs one name."""
    return {
        "WANDB_RUN_ID": attempt.job,
        "WANDB_RESUME": "allow",
        "WANDB_RUN_GROUP": attempt.sweep,
        "MLFLOW_RUN_NAME": f"{attempt.sweep}-{attempt.job}",
    }


def name_temporary_places(space: Workspace) -> dict[str, str]:
    """Return variables by which programs put temporary files where they end with the job.

    What torch compiled is no such file: it stays where torch would have it, for the next job.
    """
    if not space.temporary:
        return {}
    compiled = f"{tempfile.gettempdir()}/torchinductor_{os.geteuid()}"
    return {"TMPDIR": space.temporary, "TORCHINDUCTOR_CACHE_DIR": compiled}


def make_job_variables(attempt: Attempt, space: Workspace) -> dict[str, str]:
    """Return the variables of an attempt that runs there.

    A check gets those of the job that it checks: a program may take its seed from them.
    """
    checked = parse_check_name(attempt.sweep) if attempt.checks else None
    return {
        "MONKEY_PARAMS": json.dumps(nest_parameters(attempt.parameters), ensure_ascii=False),
        "MONKEY_JOB": attempt.checks or attempt.job,
        "MONKEY_ATTEMPT": str(attempt.number),
        "MONKEY_SWEEP": checked.sweep if checked else attempt.sweep,
        "MONKEY_OUTPUT_DIR": space.outputs,
        "MONKEY_CHECKPOINT_DIR": space.checkpoint,
        "MONKEY_METRICS_DIR": space.metrics,
        **(space.sockets.name_variables(space.root) if space.sockets else {}),
        "PWD": space.work,
    }

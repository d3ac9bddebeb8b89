"""One stack's runs of Pulumi, by its Automation API: blocking, with the state behind a bridge."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pulumi.automation import LocalWorkspace, ProjectBackend, ProjectSettings, Stack
from pulumi.automation._stack import StackInitMode, UpdateSummary

from monkey.processes.process_tree import send_signal
from monkey.removal import remove_tree
from monkey_stacks.engine.engine_command import EngineDeadline, SupervisedPulumiCommand
from monkey_stacks.engine.events import EventListener
from monkey_stacks.engine.installation import PulumiCli, find_home, make_search_path

#: What a user may have set for stacks of their own, and what must not change ours.
_OWN_VARIABLES = ("PULUMI_", "VIRTUAL_ENV")
#: Of those, what stays: where plugins are.
THEIRS = ("PULUMI_HOME",)
#: There is nothing to encrypt: secrets never enter a program. One passphrase for all, so that nobody is asked for it.
PASSPHRASE = ""
#: Keys for the bridge, which asks for none, where the environment has none: Pulumi's client wants some.
_BUCKET_KEYS = {"AWS_ACCESS_KEY_ID": "monkey", "AWS_SECRET_ACCESS_KEY": "monkey"}

#: Begins the name of a directory in which Pulumi runs; the process that made it follows.
_PREFIX = "monkey-pulumi-"

Program = Callable[[], None]

# Where Pulumi ends before its program has, Pulumi's library fails to tell it so, and would say that at length.
logging.getLogger("grpc").addHandler(logging.NullHandler())
# And where Pulumi is cut off, of its events; what became of it is told by us.
warnings.filterwarnings("ignore", "Error in event stream", UserWarning)


class _Workspace(LocalWorkspace):
    """Says less to Pulumi: each word is a process of a third of a second, and every command names its stack anyway."""

    def select_stack(self, stack_name: str) -> None:
        """Select nothing."""


class _Stack(Stack):
    """Asks for nothing after an update: events reported what became of it."""

    def outputs(self) -> Any:
        """Have none."""
        return {}

    def info(self, show_secrets: bool = True) -> UpdateSummary:
        """Know of no history."""
        from datetime import UTC, datetime

        return UpdateSummary("update", datetime.now(UTC), "", {}, {}, "")


def _clear_stale() -> None:
    """Remove the directories of processes of ours that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        with contextlib.suppress(OSError, ValueError):
            pid = int(path.name.removeprefix(_PREFIX).partition("-")[0])
            if path.stat().st_uid == os.getuid() and not send_signal(pid, 0):
                remove_tree(path)


class AutomationWorkspace:
    """A workspace of its own for one stack, in a directory that goes with it."""

    def __init__(
        self, cli: PulumiCli, env: Mapping[str, str], tether: EngineDeadline, keep: Sequence[int] = ()
    ) -> None:
        """Run `cli` with `env`, on the leash of `tether`; `keep`: descriptors that it holds open."""
        self._cli, self._env, self._tether, self._keep = cli, dict(env), tether, keep
        _clear_stale()
        self._directory = tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-", ignore_cleanup_errors=True)
        self._stack: Stack | None = None

    def close(self) -> None:
        """Remove its directory."""
        self._directory.cleanup()

    def open(self, project: str, stack: str, url: str, *, new: bool) -> None:
        """Take the stack whose state is at `url`; `new`: make it. Raises Pulumi's errors."""
        directory = self._directory.name
        # `main` in an empty place: plugins start there, and Python looks for modules first where it starts.
        settings = ProjectSettings(project, "python", main=directory, backend=ProjectBackend(url))
        command = SupervisedPulumiCommand(
            self._cli.path, self._cli.version, {**self._env, "PULUMI_BACKEND_URL": url}, self._tether, self._keep
        )
        workspace = _Workspace(directory, str(find_home()), None, None, "passphrase", settings, None, command)
        self._stack = _Stack(stack, workspace, StackInitMode.CREATE if new else StackInitMode.SELECT)

    @property
    def _at(self) -> Stack:
        assert self._stack is not None, "open() comes first"
        return self._stack

    def preview(self, program: Program, listener: EventListener, refresh: bool) -> None:
        """Say what `up` would do. Raises Pulumi's errors."""
        self._at.preview(
            program=program, on_event=listener, color="never", suppress_outputs=True, refresh=refresh or None
        )

    def up(self, program: Program, listener: EventListener, refresh: bool) -> None:
        """Make it so; continues where a resource fails. Raises Pulumi's errors."""
        self._at.up(
            program=program,
            on_event=listener,
            color="never",
            suppress_outputs=True,
            continue_on_error=True,
            refresh=refresh or None,
        )

    def refresh(self, listener: EventListener) -> None:
        """Ask the providers what is there. Raises Pulumi's errors."""
        self._at.refresh(on_event=listener, color="never")

    def destroy(self, listener: EventListener, only: Sequence[str] = ()) -> None:
        """Take everything away, or `only` these URNs; continues where one fails. Raises Pulumi's errors."""
        self._at.destroy(
            target=list(only) or None, on_event=listener, color="never", suppress_outputs=True, continue_on_error=True
        )


def make_environment(given: Mapping[str, str], mark: Mapping[str, str]) -> dict[str, str]:
    """Return what Pulumi and its plugins are started with: ours, without what would change what they do."""
    kept = {name: value for name, value in os.environ.items() if name in THEIRS or not name.startswith(_OWN_VARIABLES)}
    fixed = {
        "PATH": make_search_path(),
        "PULUMI_PYTHON_CMD": sys.executable,
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        # The state names plugins and where to fetch them, and others may write to the store.
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "NO_COLOR": "1",
    }
    keys = {} if _has_keys(kept) else _BUCKET_KEYS
    return {**keys, **kept, **fixed, **given, **mark}


def _has_keys(env: Mapping[str, str]) -> bool:
    return any(env.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"))

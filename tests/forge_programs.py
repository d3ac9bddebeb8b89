"""A forge for tests, as programs: Gitea, and act, which runs its workflows. `invoke services` builds both.

They lie in the user's cache, by name and version, as all that `tests.services` installs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.services import CACHE, build_go

#: The version of tests/tools/gitea/go.mod.
GITEA = "gitea@1.26.0"
ACT = "act@0.2.89"
#: Directories of Gitea's module that its program reads: they are not compiled into it without its own build.
ASSETS = ("templates", "options", "public")


def gitea_program() -> Path:
    """Return where Gitea is, or would be; its assets lie beside it."""
    return CACHE / GITEA / "gitea"


def install_gitea() -> None:
    """Build Gitea from its Go modules. Raises OSError and CalledProcessError."""
    with _aside(CACHE / GITEA) as aside:
        version, tags = GITEA.partition("@")[2], "sqlite sqlite_unlock_notify"
        build_go("gitea", aside / "gitea", "code.gitea.io/gitea", f"-X main.Version={version}", tags)
        command = ["go", "list", "-m", "-f", "{{.Dir}}", "code.gitea.io/gitea"]
        tools = Path(__file__).parent / "tools/gitea"
        module = subprocess.run(command, cwd=tools, check=True, capture_output=True, text=True).stdout.strip()
        for name in ASSETS:
            # Modules are read-only, directories too: nothing could be put into a copy, or be removed.
            shutil.copytree(Path(module) / name, aside / name, copy_function=shutil.copyfile)
        for directory in [path for name in ASSETS for path in [aside / name, *(aside / name).rglob("*")]]:
            if directory.is_dir():
                directory.chmod(0o755)


def act_program() -> Path:
    """Return where act is, or would be."""
    return CACHE / ACT / "act"


def install_act() -> None:
    """Build act from its Go modules. Raises OSError and CalledProcessError."""
    with _aside(CACHE / ACT) as aside:
        package = f"github.com/nektos/act@v{ACT.partition('@')[2]}"
        command = ["go", "install", "-trimpath", "-ldflags", "-s -w", package]
        subprocess.run(command, env={**os.environ, "GOBIN": str(aside)}, check=True)


#: Name and version → where it is, what installs it, and what that needs.
PROGRAMS: dict[str, tuple[Callable[[], Path], Callable[[], None], tuple[str, ...]]] = {
    GITEA: (gitea_program, install_gitea, ("go", "cc")),
    ACT: (act_program, install_act, ("go",)),
}


@contextlib.contextmanager
def _aside(target: Path) -> Iterator[Path]:
    """Give a directory that becomes `target` in the end, so that half of it is never taken for all."""
    aside = target.with_name(f"{target.name}.{os.getpid()}")
    aside.mkdir(parents=True)
    try:
        yield aside
        with contextlib.suppress(FileExistsError, OSError):  # another was faster
            aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)

"""Git as a child process: it starts nothing that a repository names, and asks no terminal."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from monkey.errors import PlanError

#: Seconds after which git is taken to hang (a dead network file system, a prompt).
_TIMEOUT_SECONDS = 120

#: Set while a hook runs, for the hook's repository: not necessarily the one that is asked here. And what changes how
#: paths are read: `git --literal-pathspecs commit` hands that on to its hooks.
_NOT_OURS = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_NAMESPACE"),
    "GIT_ALLOW_PROTOCOL",
    *("GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"),
)
#: Nothing is fetched in passing: a partial clone would, by a program that its own settings name.
_ALWAYS = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}
_ASK_NOBODY = {"GIT_ALLOW_PROTOCOL": ""}
#: For a git that may fetch what a partial clone lacks, and more history: never a prompt, and no program that a remote's
#: address names.
FETCH_ALONE = {"GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "0"}

#: A repository can name programs that git then starts, and a stranger's branch can bring such a repository along.
_START_NOTHING = (
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
)


def run_git(
    top: Path,
    *arguments: str,
    given: bytes = b"",
    variables: Mapping[str, str] | None = None,
    online: Mapping[str, str] | None = None,
    timeout: float = _TIMEOUT_SECONDS,
    inherit: Sequence[int] = (),
) -> subprocess.CompletedProcess[bytes]:
    """Run git in the directory `top`, and return how it ended. Raises PlanError where it cannot run, or hangs.

    `given`: its input. `variables`: more of its environment. `online`: the same for a git that may reach a remote, by
    the protocols that they name, such as `FETCH_ALONE`. `inherit`: descriptors that git gets.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_OURS} | _ALWAYS
    environment |= {**(_ASK_NOBODY if online is None else online), **(variables or {})}
    try:
        return subprocess.run(
            ["git", *_START_NOTHING, "-C", str(top), *arguments],
            input=given,
            capture_output=True,
            env=environment,
            timeout=timeout,
            check=False,
            pass_fds=inherit,
            # Without a terminal, ssh asks for no passphrase and no host's key: it fails at once.
            start_new_session=online is not None,
        )
    except FileNotFoundError as exc:
        raise PlanError(
            f"{top} is in a git work tree, but there is no git here to tell which of its files are ignored",
            hint="install git",
        ) from exc
    except subprocess.TimeoutExpired as exc:
        raise PlanError(f"git did not answer within {timeout:g} s in {top}") from exc

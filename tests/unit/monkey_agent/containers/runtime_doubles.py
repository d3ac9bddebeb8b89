"""Runtimes that are scripts: what a real podman says and exits with, at a moment that a test chooses.

They are doubles. A real runtime is broken by the state of its machine (user ids, control groups, its daemon), which a
quick test can neither make nor mend. Their words and codes are those of podman 4.3, as it was seen to fail.
"""

from __future__ import annotations

from pathlib import Path

#: The images of tests: never pulled, as the doubles have every image.
DIGEST, OTHER = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
IMAGE = {"image": "docker.io/lab/train:1"}
#: podman's words up to the command are its own; files say what it does at `run`, `pull` and `info`.
_PODMAN = """\
#!/bin/sh
case $1 in
run) while [ "${{1#--entrypoint}}" = "$1" ]; do shift; done; shift 2; echo run >>{does}.asked; . {does};;
pull) . {pulls};;
info) . {answers};;
image) echo 1;;
esac
"""
#: It runs the container's first process on this machine itself.
WORKS = 'exec /bin/sh "$@"'


def fail(code: int, *lines: str) -> str:
    """Return what a runtime does that says these lines, ends with this code, and runs nothing."""
    said = "".join(f"echo '{line}' >&2\n" for line in lines)
    return f"{said}exit {code}\n"


class Podman:
    """A podman in a directory of its own, which works until it is told otherwise."""

    def __init__(self, place: Path) -> None:
        """Make it in `place`."""
        self._directory = place / "programs"
        self._directory.mkdir()
        self._files = {name: place / f"podman.{name}" for name in ("does", "pulls", "answers")}
        self.program = self._directory / "podman"
        self.program.write_text(_PODMAN.format(**self._files))
        self.program.chmod(0o755)
        self.does(WORKS)
        self.pulls("")
        self.answers("")

    def does(self, what: str) -> None:
        """Have it do this when it is to run a container, from now on."""
        self._files["does"].write_text(what)

    def pulls(self, what: str) -> None:
        """Have it do this when it is to pull an image."""
        self._files["pulls"].write_text(what)

    def answers(self, what: str) -> None:
        """Have it do this when it is asked whether it works. Where it fails, no pull works either."""
        self._files["answers"].write_text(what)
        self.pulls(what)

    @property
    def path(self) -> str:
        """The PATH on which it is found."""
        return f"{self._directory}:/usr/bin:/bin"

    @property
    def asked(self) -> int:
        """Number of containers that it was asked to run."""
        asked = Path(f"{self._files['does']}.asked")
        return len(asked.read_text().splitlines()) if asked.exists() else 0

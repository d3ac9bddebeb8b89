"""Records docs/run.svg: real commands in a real terminal, as a screen of it stood in the end.

    pip install pyte && python docs/record.py

Needs a clone that has not run the sweep yet: it works in a copy, so that the developer's store is left alone.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

ROOT = Path(__file__).parents[1]
COLUMNS, LINES = 100, 200
#: What is shown, in this order. A pair: what the picture says was typed, and what runs.
COMMANDS = [
    ("monkey plan specs/digits.yaml", None),
    ("monkey apply specs/digits.yaml", None),
    ("monkey results digits --group-by lr,hidden", None),
]


def main() -> None:
    """Run the commands on one screen and save it."""
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "digits"
        shutil.copytree(ROOT / "specs", project / "specs")
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        for typed, command in COMMANDS:
            stream.feed(f"\x1b[1;32m$\x1b[0m \x1b[1m{typed}\x1b[0m\r\n".encode())
            play(command or typed, project, stream)
            stream.feed(b"\r\n")
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: PTH123, SIM115
    for row in rows(screen):
        console.print(row, no_wrap=True, overflow="crop")
    console.save_svg(str(ROOT / "docs" / "run.svg"), title="monkey", unique_id="run")


def play(command: str, project: Path, stream: pyte.ByteStream) -> None:
    """Run a command in a terminal of our size, and feed the screen with all that it prints."""
    pid, terminal = pty.fork()
    if pid == 0:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        env = {
            "PATH": path,
            "HOME": os.environ["HOME"],
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
        }
        os.chdir(project)
        os.execvpe("bash", ["bash", "-c", command], env)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        stream.feed(data)
    if os.waitpid(pid, 0)[1]:
        raise SystemExit(f"{command} failed")


def rows(screen: pyte.Screen) -> list[Text]:
    """Return the screen's lines with their styles, without the empty ones at the end."""
    lines = [line(screen.buffer[y]) for y in range(LINES)]
    while lines and not lines[-1].plain.strip():
        lines.pop()
    return lines


def line(cells: dict[int, pyte.screens.Char]) -> Text:
    text = Text()
    for x in range(COLUMNS):
        cell = cells[x]
        text.append(
            cell.data, Style(color=colour(cell.fg), bgcolor=colour(cell.bg), bold=cell.bold, italic=cell.italics)
        )
    text.rstrip()
    return text


def colour(name: str) -> str | None:
    """Translate pyte's names of colours into rich's."""
    if name == "default":
        return None
    if re.fullmatch(r"[0-9a-f]{6}", name):
        return f"#{name}"
    return {"brown": "yellow", "brightbrown": "bright_yellow"}.get(name, name.replace("bright", "bright_"))


if __name__ == "__main__":
    main()

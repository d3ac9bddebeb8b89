"""Records docs/run.svg and docs/plot.svg: real commands in a real terminal, half way and at their end.

    pip install pyte && python docs/record.py

It works in a copy, so that the developer's store is left alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

ROOT = Path(__file__).parents[1]
COLUMNS, LINES = 100, 200
#: What is typed for each picture, one after another in one project.
TYPED = {
    "run": [
        "monkey apply specs/digits.yaml",
        "monkey results digits --group-by lr,hidden --top 5",
        "sed -i 's/0.1, 0.3]/0.1, 0.2, 0.3]/' specs/digits.yaml && monkey plan",
    ],
    "plot": [
        "monkey plot digits --metric loss --top 5",
        "monkey plot digits --kind parallel",
    ],
}
#: What a screen shows in the middle of a run; such a screen is kept, since the end of the run wipes it.
HALFWAY = re.compile(r" (1[2-9]|2[0-9])/36 ")
#: The font that rich would have viewers fetch from elsewhere.
FONT = re.compile(r"@font-face \{.*?\}", re.DOTALL)


def main() -> None:
    """Draw each picture."""
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "digits"
        shutil.copytree(ROOT / "specs", project / "specs")
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        for name, commands in TYPED.items():
            (ROOT / "docs" / f"{name}.svg").write_text(record_commands(name, commands, project))


def record_commands(name: str, commands: list[str], project: Path) -> str:
    """Run the commands one after another, each on a screen of its own, and return what was seen, as SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for typed in commands:
        console.print(Text.assemble(("$ ", "bold green"), (typed, "bold")), no_wrap=True)
        for row in play(typed, project):
            console.print(row, no_wrap=True, overflow="crop")
        console.print()
    return FONT.sub("", console.export_svg(title="monkey", unique_id=name))


def play(command: str, project: Path) -> list[Text]:
    """Run a command in a terminal of our size, and return what was to be seen: half way, and what then came."""
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    halfway: list[Text] = []
    for data in output(command, project):
        stream.feed(data)
        if any(HALFWAY.search(shown) for shown in screen.display):
            halfway = rows(screen)
    end = rows(screen)
    same = next((at for at, (one, other) in enumerate(zip(halfway, end, strict=False)) if one != other), 0)
    return halfway + end[same:]


def output(command: str, project: Path) -> Iterator[bytes]:
    """Yield what a command writes to its terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "MONKEY_DEBUG")}
        env |= {"PATH": path, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        os.chdir(project)
        os.execvpe("bash", ["bash", "-c", command], env)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    with contextlib.suppress(OSError):  # how a terminal says that its last process has gone
        while data := os.read(terminal, 65536):
            yield data
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

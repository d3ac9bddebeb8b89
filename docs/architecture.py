"""Draws docs/architecture.svg from the code: packages on their floors, and what imports what.

`python docs/architecture.py` writes it anew; a test holds the picture to the code.
"""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "architecture.svg"
CONTRACT = "Floors: the top may import lower, never up"
#: Where Python finds each of our packages.
HOMES = {"monkey": ROOT, "monkey_agent": ROOT / "agent", "monkey_stacks": ROOT / "stacks"}
#: Pixels: the picture's width; between boxes; between floors, where the arrows run; from an edge to text.
WIDTH, GAP, RUN, PAD = 1200, 16, 44, 12
#: Pixels: a line of small text, and how wide its letters are on average.
LINE, LETTER = 17, 6.4


def read_packages() -> list[str]:
    """Return the packages, top first, as import-linter is told them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    [layers] = [one["layers"] for one in settings["contracts"] if one["name"] == CONTRACT]
    return [name.strip() for layer in layers for name in layer.split("|")]


def list_files(package: str) -> list[Path]:
    """Return the files of a package, or of a module."""
    path = HOMES[package.partition(".")[0]] / package.replace(".", "/")
    return sorted(path.rglob("*.py")) or [path.with_suffix(".py")]


def find_imports(package: str, others: list[str]) -> set[str]:
    """Return those of the other packages that one imports, wherever in its files."""
    found = set()
    for path in list_files(package):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {other for name in names for other in others if f"{name}.".startswith(f"{other}.")}
    return found - {package}


def reduce_edges(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out what another arrow already implies (the transitive reduction of an acyclic graph)."""

    def reach(start: str) -> Iterator[str]:
        for other in edges[start]:
            yield other
            yield from reach(other)

    return {
        start: {end for end in ends if not any(end in set(reach(other)) for other in ends - {end})}
        for start, ends in edges.items()
    }


def stack_floors(imports: dict[str, set[str]]) -> list[list[str]]:
    """Return the packages of each floor, top first: one stands right above the highest that it imports."""
    heights = dict.fromkeys(imports, 0)
    for name in reversed(imports):  # what is lower in the contract imports nothing that is higher
        heights[name] = max((heights[other] + 1 for other in imports[name]), default=0)
    return [[name for name in imports if heights[name] == height] for height in range(max(heights.values()), -1, -1)]


def describe_package(package: str) -> tuple[str, list[str]]:
    """Return the first line of a package's docstring, and the names of its folders."""
    files = list_files(package)
    doc = ast.get_docstring(ast.parse(files[0].read_text())) or ""
    folders = sorted({path.parent.name for path in files if path.parent.parent.name == package.rpartition(".")[2]})
    return doc.partition("\n")[0].replace("`", ""), folders


def write_box(x: float, y: float, width: float, height: float, package: str) -> Iterator[str]:
    """Yield a package's box: its name, its line, its folders."""
    line, folders = describe_package(package)
    yield f'<rect class="box" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6"/>'
    yield f'<text class="name" x="{x + PAD:.0f}" y="{y + 22:.0f}">{escape(package.removeprefix("monkey."))}</text>'
    letters = int((width - 2 * PAD) / LETTER)
    rows = [("line", row) for row in textwrap.wrap(line, letters)]
    rows += [("folders", row) for row in textwrap.wrap(" · ".join(folders), letters)]
    for number, (kind, row) in enumerate(rows):
        yield f'<text class="{kind}" x="{x + PAD:.0f}" y="{y + 42 + LINE * number:.0f}">{escape(row)}</text>'


def measure_box(package: str, width: float) -> float:
    """Return how high a package's box must be, in pixels."""
    return 34 + LINE * sum(
        'class="name"' not in part and "<text" in part for part in write_box(0, 0, width, 0, package)
    )


def draw_picture() -> str:
    """Return the picture as SVG."""
    packages = read_packages()
    imports = {name: find_imports(name, packages) for name in packages}
    floors = stack_floors(imports)
    edges = reduce_edges(imports)
    boxes, parts, places, y = list[str](), list[str](), dict[str, tuple[float, float, float]](), float(GAP)
    for floor in floors:
        width = (WIDTH - GAP * (len(floor) + 1)) / len(floor)
        height = max(measure_box(name, width) for name in floor)
        for column, name in enumerate(floor):
            x = GAP + column * (width + GAP)
            places[name] = x + width / 2, y, y + height
            boxes += write_box(x, y, width, height, name)
        y += height + RUN
    for start, ends in edges.items():
        for end in sorted(ends):
            (x1, _, y1), (x2, y2, _) = places[start], places[end]
            bend = f"{x1:.0f} {y1 + RUN / 2:.0f} {x2:.0f} {y2 - RUN / 2:.0f} {x2:.0f} {y2 - 4:.0f}"
            parts.append(f'<path class="arrow" d="M{x1:.0f} {y1:.0f} C{bend}"/>')
    style = re.sub(r"\n\s*", "", STYLE)
    size = f'viewBox="0 0 {WIDTH} {y - RUN + GAP:.0f}"'
    title = "<title>monkey: packages on their floors; an arrow means “imports”</title>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><style>{style}</style>{title}{MARKER}'
    # Arrows first: one that passes a floor goes behind its boxes.
    return "\n".join([head, *parts, *boxes, "</svg>", ""])


STYLE = """
    text{font-family:system-ui,sans-serif;fill:#1c2b33}
    .name{font-size:15px;font-weight:600}
    .line{font-size:12.5px}
    .folders{font-size:12px;fill:#0b7a6e}
    .box{fill:#f4f8f7;stroke:#8aa5a0}
    .arrow{fill:none;stroke:#5f7d86;stroke-width:1.3;marker-end:url(#tip)}
    @media (prefers-color-scheme:dark){
    text{fill:#d5e0e3}.folders{fill:#5fd0c0}.box{fill:#1d2629;stroke:#4b6068}.arrow{stroke:#8fa6ad}}
"""
MARKER = (
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z" fill="#5f7d86"/></marker>'
)

if __name__ == "__main__":
    PICTURE.write_text(draw_picture())

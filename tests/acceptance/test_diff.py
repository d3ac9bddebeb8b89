"""`monkey diff` over a sweep that ran twice: what it shows of code and data is what git finds between the trees."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.acceptance.shop import Shop

TRAIN = """\
import os
import sys

import monkey

rate = float(sys.argv[1])
for step in range(3):
    monkey.log("loss", rate / (step + 1), step=step)
open("result.txt", "w").write(os.environ["WORKERS"])
"""
SPEC = """\
command: [python3, train.py, '{rate}']
parameters: {rate: [0.5, 1]}
datasets: {faces: {path: faces}}
metric: {name: loss}
outputs: [result.txt]
code: {root: code}
env: {WORKERS: '1', OLD: '1'}
"""
#: What git says of a file that we say in another way.
HEADS = ("diff ", "index ", "new ", "old ", "deleted ", "Binary ")


def write_first(shop: Shop) -> None:
    """Write the sweep, its code and its data."""
    code, faces = shop.root / "code", shop.root / "faces"
    (code / "lib").mkdir(parents=True)
    faces.mkdir()
    (code / "train.py").write_text(TRAIN)
    for name, text in {"gone.py": "x = 1\n", "sizes.py": "\n".join(map(str, range(300))), "run.sh": "ls\n"}.items():
        (code / "lib" / name).write_text(text)
    for name in ("a.png", "b.png", "c.png"):
        (faces / name).write_text(name)
    shop.spec(SPEC)


def write_second(shop: Shop) -> None:
    """Change each kind of thing in each way."""
    code, faces = shop.root / "code", shop.root / "faces"
    (code / "train.py").write_text(TRAIN.replace("rate /", "2 * rate /").replace("range(3)", "range(4)"))
    lines = (code / "lib/sizes.py").read_text().split("\n")
    (code / "lib/sizes.py").write_text("\n".join([*lines[:9], "nine", *lines[10:200], "new", *lines[200:]]) + "\n")
    (code / "lib/gone.py").unlink()
    (code / "lib/new.py").write_text("y = 'ü'\n")
    (code / "lib/data.bin").write_bytes(bytes(range(256)))
    (code / "lib/run.sh").chmod(0o755)
    (faces / "a.png").unlink()
    (faces / "b.png").write_text("another")
    (faces / "d.png").write_text("d.png")
    spec = SPEC.replace("[0.5, 1]", "[1, 2]").replace("WORKERS: '1', OLD: '1'", "WORKERS: '2', NEW: '1'")
    shop.spec(spec + "max_retries: 1\n")


def keep_trees(shop: Shop, into: Path, side: str) -> None:
    """Copy code and data as they are now."""
    for name in ("code", "faces"):
        shutil.copytree(shop.root / name, into / name / side)


def ask_git(base: Path, *options: str) -> list[str]:
    """Return what git finds between the trees `a` and `b`."""
    command = ["git", "diff", "--no-index", "--no-renames", "--no-prefix", *options, "a", "b"]
    done = subprocess.run(command, cwd=base, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    return done.stdout.splitlines()


def name_changes(base: Path) -> dict[str, str]:
    """Return the files that git finds: path to A, D or M."""
    return {line.split("\t")[1].partition("/")[2]: line[0] for line in ask_git(base, "--name-status")}


def read_lines(lines: list[str]) -> list[str]:
    """Return the lines of a diff without what only git says, and without the function that a hunk stands in."""
    return [
        f"{line[: line.index(' @@')]} @@" if line.startswith("@@") else line
        for line in lines
        if not line.startswith(HEADS)
    ]


def by_name(found: dict[str, Any], part: str) -> dict[str, tuple[Any, Any]]:
    return {one["name"]: (one.get("a"), one.get("b")) for one in found[part]}


def check_code(found: dict[str, Any], base: Path) -> None:
    """Hold the files and lines against git's; git makes B of A by them."""
    letters = {"added": "A", "removed": "D", "changed": "M"}
    assert {one["path"]: letters[one["status"]] for one in found["files"]} == name_changes(base)
    lines: list[str] = []
    for one in found["files"]:
        if one["diff"]:
            lines += ["--- /dev/null" if one["status"] == "added" else f"--- a/{one['path']}"]
            lines += ["+++ /dev/null" if one["status"] == "removed" else f"+++ b/{one['path']}", *one["diff"]]
    assert lines == read_lines(ask_git(base))
    patch = "".join(f"{line}\n" for line in lines).encode()
    subprocess.run(["git", "apply", "-"], cwd=base / "a", input=patch, check=True)
    assert name_changes(base) == {"lib/data.bin": "A", "lib/run.sh": "M"}, "bytes and rights are no lines"


def test_what_differs_is_what_git_finds(shop: Shop, tmp_path: Path) -> None:
    write_first(shop)
    keep_trees(shop, tmp_path, "a")
    shop.run("apply")
    write_second(shop)
    keep_trees(shop, tmp_path, "b")
    shop.run("apply")
    wanted = shop.json("diff", "sweep@1", "sweep@2", code=2)
    (row,) = [row for row in shop.json("results", "sweep") if row["parameters"]["rate"] == 1]
    (pair,) = wanted["jobs"]["changed"]
    assert pair["b"] == row["job"] and len(wanted["jobs"]["added"]) == len(wanted["jobs"]["removed"]) == 1
    assert by_name(wanted, "space") == {"rate": ([0.5], [2])} and by_name(wanted, "settings") == {"max_retries": (0, 1)}
    ran = shop.json("diff", pair["a"], f"sweep/{pair['b']}", code=2)
    assert "parameters" not in ran, "both have the rate 1"
    assert by_name(ran, "env") == {"WORKERS": ("1", "2"), "OLD": ("1", None), "NEW": (None, "1")}
    assert {one["name"]: one.get("difference") for one in ran["metrics"]} == {
        "loss last": 2 / 4 - 1 / 3,
        "loss best": 2 / 4 - 1 / 3,
    }
    assert by_name(ran, "outputs").keys() == {"result.txt"}
    assert ran["code"] == wanted["code"] and ran["data"] == wanted["data"]
    shown = shop.run("diff", "sweep@1", "sweep", code=2).stdout
    assert {line for line in read_lines(ask_git(tmp_path / "code")) if line[0] in "+-@"} <= set(shown.splitlines())
    (faces,) = ran["data"]
    letters = {"added": "A", "removed": "D", "changed": "M"}
    found = {path: letter for part, letter in letters.items() for path in faces[part]}
    assert found == name_changes(tmp_path / "faces")
    check_code(ran["code"], tmp_path / "code")

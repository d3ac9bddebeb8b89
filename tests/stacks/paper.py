"""A tiny resource of the tests' own: a file. What its provider does stands in a ledger that Pulumi knows nothing of.

It is imported by Pulumi's plugin, too: a process of its own, which finds it by PYTHONPATH.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pulumi import Input, ResourceOptions
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult
from pulumi.dynamic.dynamic import serialize_provider

from monkey_stacks.state.state_rules import StateRules

#: Its type, as Pulumi says it.
TYPE = "pulumi-python:dynamic/tests:Paper"


class PaperProvider(ResourceProvider):
    """Writes the file `path` with `text`, in `seconds` (below zero: until `Desk.let_go`). "refuse" is refused."""

    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> CreateResult:
        _note("create", props["path"])
        _write(props)
        return CreateResult(props["path"], _plain(props))

    def update(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        _note("update", id_)
        _write(news)
        return UpdateResult(_plain(news))

    def diff(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        changed = [name for name in ("path", "text") if olds.get(name) != news.get(name)]
        return DiffResult(bool(changed), ["path"] if "path" in changed else [], delete_before_replace=False)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        path = Path(id_)
        return ReadResult(
            id_ if path.exists() else "", {**_plain(props), "text": path.read_text() if path.exists() else ""}
        )

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        _note("delete", id_)
        if Path(f"{id_}.stuck").exists():
            raise ValueError(f"{id_} sticks")
        time.sleep(0.1)
        Path(id_).unlink(missing_ok=True)


class Paper(Resource, module="tests", name="Paper"):
    """A file at `path`."""

    def __init__(
        self, name: str, path: Path, text: Input[str], seconds: float = 0.0, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__(PaperProvider(), name, {"path": str(path), "text": text, "seconds": seconds}, opts)


RULES = StateRules(
    types={TYPE}, settings={"pulumi-python": ()}, pickle=lambda: {TYPE: serialize_provider(PaperProvider())}
)


def identify(type_: str, inputs: Mapping[str, Any]) -> str | None:
    """Know a paper by its path, written or not."""
    return inputs["path"] if type_ == TYPE else None


def _write(props: dict[str, Any]) -> None:
    """In two steps, so that one who is killed between them leaves half a file."""
    if props["text"] == "refuse":
        raise ValueError(f"{props['path']} is not to be written")
    path = Path(props["path"])
    path.write_text(props["text"][: len(props["text"]) // 2])
    if props["seconds"] < 0:
        while not Path(f"{os.environ['PAPER_LEDGER']}.go").exists():
            time.sleep(0.02)
    time.sleep(max(0.0, props["seconds"]))
    path.write_text(props["text"])


def _plain(props: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in props.items() if name != "__provider"}


def _note(what: str, path: str) -> None:
    with Path(os.environ["PAPER_LEDGER"]).open("a") as ledger:
        ledger.write(f"{what} {Path(path).name}\n")

"""Google Cloud as a directory: a file for each thing that there is, called by its id; and what is to go wrong.

`faults.json` in it is a list of {"match": "create .*Network", "say": "googleapi: Error 403: …", "times": 1}: what is
asked is refused with these words. Without "say" it is held for ever, {"after": true}: once it is done; whoever asked is
to be killed then, when `reached` is there.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from tests.clouds.kind import Props, Refused

#: Names the directory.
SHELF = "CLOUD_SHELF"


@dataclass
class Shelf:
    """The directory, as a provider with these settings sees it."""

    base: Path
    project: str = ""
    region: str = ""
    zone: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def things(self) -> dict[str, Props]:
        """All that there is: id → what it is, its type with it."""
        found = {unquote(path.name): path for path in sorted((self.base / "things").glob("*")) if path.name[0] != "."}
        return {id_: json.loads(path.read_text()) for id_, path in found.items()}

    @property
    def roles(self) -> dict[str, Props]:
        """The roles of the project's own, which an administrator made: name to what it is."""
        path = self.base / "roles.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def make_role(self, name: str, role: Mapping[str, Any] | None) -> None:
        """Make a role, as an administrator does; None takes it away."""
        found = {**self.roles, name: {"name": name, **(role or {})}}
        (self.base / "roles.json").write_text(
            json.dumps({key: each for key, each in found.items() if key != name or role})
        )

    def get(self, id_: str) -> Props | None:
        try:
            found: Props = json.loads(self._path(id_).read_text())
        except FileNotFoundError:
            return None
        return found

    def make(self, type_: str, id_: str, props: Props) -> None:
        """Lay it there. Raises Refused where there is one."""
        with self._lock:
            self._meet(f"create {type_} {id_}", after=False)
            if self._path(id_).exists():
                raise Refused(f"googleapi: Error 409: The resource '{id_}' already exists, alreadyExists")
            self._write(id_, {"type": type_, **props})
            self._meet(f"create {type_} {id_}", after=True)

    def change(self, type_: str, id_: str, props: Props) -> None:
        with self._lock:
            self._meet(f"update {type_} {id_}", after=False)
            if not self._path(id_).exists():
                raise Refused(f"googleapi: Error 404: The resource '{id_}' was not found, notFound")
            self._write(id_, {"type": type_, **props})
            self._meet(f"update {type_} {id_}", after=True)

    def remove(self, type_: str, id_: str) -> None:
        """Take it away, unless something else is in it. Raises Refused."""
        with self._lock:
            self._meet(f"delete {type_} {id_}", after=False)
            mentions = json.dumps(id_)[1:-1]
            for other, props in self.things.items():
                if other != id_ and re.search(rf"{re.escape(mentions)}(?![\w-])", json.dumps(props)):
                    said = f"The resource '{id_}' is already being used by '{other}', resourceInUseByAnotherResource"
                    raise Refused(f"googleapi: Error 400: {said}")
            self._path(id_).unlink(missing_ok=True)
            self._meet(f"delete {type_} {id_}", after=True)

    def meet(self, asked: str) -> None:
        """Meet what is to go wrong with a question. Raises Refused."""
        with self._lock:
            self._meet(asked, after=False)

    def _path(self, id_: str) -> Path:
        return self.base / "things" / quote(id_, safe="")

    def _write(self, id_: str, props: Props) -> None:
        path = self._path(id_)
        path.parent.mkdir(parents=True, exist_ok=True)
        fd, aside = tempfile.mkstemp(dir=path.parent, prefix=".")
        with os.fdopen(fd, "w") as file:
            json.dump(props, file)
        Path(aside).replace(path)

    def _meet(self, asked: str, *, after: bool) -> None:
        """Meet what is to go wrong with it, if anything is."""
        script = self.base / "faults.json"
        faults: list[dict[str, Any]] = json.loads(script.read_text()) if script.exists() else []
        for fault in faults:
            if bool(fault.get("after")) is after and fault.get("times", 1) and re.search(fault["match"], asked):
                fault["times"] = fault.get("times", 1) - 1
                script.write_text(json.dumps(faults))
                self._befall(fault, asked)

    def _befall(self, fault: dict[str, Any], asked: str) -> None:
        if fault.get("say"):
            raise Refused(fault["say"])
        (self.base / "reached").write_text(asked)
        while True:
            time.sleep(60)

"""Google's APIs over the shelf, as far as a fleet asks them: a real HTTP server, whose groups make and end machines."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.clouds.gcp.guard import Guard
from tests.clouds.gcp.iam import Iam, read_given
from tests.clouds.gcp.offers import IMAGES, NOT_THERE, TYPES, ZONES
from tests.clouds.gcp.served import make_handler
from tests.clouds.gcp.shelf import Shelf
from tests.clouds.kind import Refused

ROOT = "https://www.googleapis.com/compute/v1/"
Answer = dict[str, Any] | None


class Rest:
    """An account's APIs. What it is told lies on the shelf, where the double of Pulumi's provider has its own."""

    def __init__(self, shelf: Shelf) -> None:
        """Serve nobody yet."""
        self.shelf = shelf
        self.asked: list[str] = []  # "POST compute/v1/projects/…/resize?size=2"
        #: Why groups get no machines: as Google says it, a code and a message.
        self.shortage: tuple[str, str] | None = None
        self.buckets: dict[str, Any] = {}
        #: Which call is held, for its asker to be killed then; whether it is carried out before; and that it came.
        self.held, self.after, self.reached = "", False, threading.Event()
        self.guard = Guard(self._iam)
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), make_handler(self.guard, self.answer))

    def _iam(self) -> Iam:
        roles = {name: frozenset(each["includedPermissions"]) for name, each in self.shelf.roles.items()}
        return Iam(tuple(read_given(self.shelf.things)), roles)

    @property
    def endpoint(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    @contextmanager
    def running(self) -> Iterator[Rest]:
        """Serve for a while."""
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, Any]:
        """Return status and JSON of a call."""
        held = bool(self.held) and re.search(self.held, f"{method} {target}") is not None
        if held and not self.after:
            self._hold()
            return 503, {}
        status, said = self._answer(method, target, body)
        if held:
            self._hold()
        return status, said

    def _hold(self) -> None:
        """Hold it until nothing is held any more: who asked is gone then."""
        self.reached.set()
        while self.held:
            time.sleep(0.05)

    def _answer(self, method: str, target: str, body: bytes) -> tuple[int, Any]:
        parts = urlsplit(target)
        path, query = unquote(parts.path).lstrip("/"), {name: each[-1] for name, each in parse_qs(parts.query).items()}
        with self._lock:
            self.asked.append(f"{method} {path}{f'?{parts.query}' if parts.query else ''}")
            try:
                self.shelf.meet(f"{method} {path}")
                found = self._found(method, path, query, json.loads(body) if body else {})
            except Refused as exc:
                status = int((re.search(r"Error (\d{3})", str(exc)) or ["", "400"])[1])
                message = str(exc).removeprefix("googleapi: ").partition(": ")[2]
                return status, {"error": {"code": status, "message": message}}
            if found is None:
                message = f"The resource '{path.partition('v1/')[2]}' was not found"
                return 404, {"error": {"code": 404, "message": message, "errors": [{"reason": "notFound"}]}}
            return 200, found

    def _found(self, method: str, path: str, query: dict[str, str], said: Any) -> Answer:
        for verb, pattern, do in self._calls:
            if verb == method and (found := re.fullmatch(pattern, path)):
                return do(self, *found.groups(), query=query, said=said)
        return None

    # -- what there is -------------------------------------------------------------------------------------------------

    def _types(self, project: str, *, query: dict[str, str], said: Any) -> Answer:
        [name] = _matched(r'name="(.+)"', query["filter"])
        items: dict[str, Any] = {f"zones/{zone}": {"warning": {"code": "NO_RESULTS_ON_PAGE"}} for zone in ZONES}
        for zone in ZONES if name in TYPES else ():
            if NOT_THERE.get(name) != zone:
                items[f"zones/{zone}"] = {"machineTypes": [{"name": name, **TYPES[name]}]}
        return {"items": items}

    def _image(self, project: str, family: str | None, name: str, *, query: dict[str, str], said: Any) -> Answer:
        images = IMAGES.get(project, {})
        found = images.get(name) if family else name if name in images.values() else None
        if found is None:
            return None
        link = f"{ROOT}projects/{project}/global/images/{found}"
        return {"selfLink": link, "diskSizeGb": "10", "architecture": "ARM64" if "arm64" in found else "X86_64"}

    def _thing(self, id_: str, *, query: dict[str, str], said: Any) -> Answer:
        found = self.shelf.get(id_)
        if found is None:
            return None
        # A template's labels are those of its machines.
        more = {"properties": {"labels": found.get("labels", {})}} if "/instanceTemplates/" in id_ else {}
        return {**found, **more, "name": id_.rpartition("/")[2], "selfLink": f"{ROOT}{id_}"}

    def _delete(self, id_: str, *, query: dict[str, str], said: Any) -> Answer:
        found = self.shelf.get(id_)
        if found is None:
            return None
        self._clear(self.machines(id_))
        self.shelf.remove(found["type"], id_)
        return {"status": "DONE"}

    def _templates(self, project: str, *, query: dict[str, str], said: Any) -> Answer:
        pattern = query["filter"].removeprefix("name eq ")
        at = f"projects/{project}/global/instanceTemplates/"
        there = {id_.removeprefix(at): props for id_, props in self.shelf.things.items() if id_.startswith(at)}
        found = {name: props for name, props in there.items() if re.fullmatch(pattern, name)}
        return {"items": [{"name": name, "properties": {"labels": props["labels"]}} for name, props in found.items()]}

    def _labelled(self, project: str, what: str, *, query: dict[str, str], said: Any) -> Answer:
        label, value = _matched(r'labels\.(.+)="(.+)"', query["filter"])
        items: dict[str, Any] = {f"zones/{zone}": {"warning": {"code": "NO_RESULTS_ON_PAGE"}} for zone in ZONES}
        for id_, props in self.shelf.things.items():
            if props["type"] == what.rstrip("s") and props["labels"].get(label) == value:
                scope = items.setdefault(f"zones/{id_.split('/')[3]}", {})
                scope.setdefault(what, []).append({"name": id_.rpartition("/")[2], **props})
        return {"items": items}

    # -- groups --------------------------------------------------------------------------------------------------------

    def machines(self, group: str = "") -> dict[str, dict[str, Any]]:
        """Return the machines of a group, or all: id → what they are."""
        found = {id_: props for id_, props in self.shelf.things.items() if props["type"] == "instance"}
        return {id_: props for id_, props in found.items() if props["group"] == group or not group}

    def _managed(self, group: str, *, query: dict[str, str], said: Any) -> Answer:
        there = self.shelf.get(group)
        if there is None:
            return None
        listed = [
            {
                "instance": f"{ROOT}{id_}",
                "instanceStatus": props["status"],
                "currentAction": "NONE",
                "version": {"instanceTemplate": f"{ROOT}{props['template']}"},
            }
            for id_, props in self.machines(group).items()
        ]
        for number in range(int(there.get("targetSize", 0)) - len(listed)):
            code, message = self.shortage or ("", "")
            errors = {"errors": {"errors": [{"code": code, "message": message}]}} if code else {}
            link = f"{ROOT}{_zonal(group, 0)}/instances/{there['name']}-new{number}"
            listed.append({"instance": link, "currentAction": "CREATING", "lastAttempt": errors})
        return {"managedInstances": listed}

    def _resize(self, group: str, *, query: dict[str, str], said: Any) -> Answer:
        there = self.shelf.get(group)
        if there is None:
            return None
        self._sized(group, there, int(query["size"]))
        return {"status": "DONE"}

    def _sized(self, group: str, there: dict[str, Any], size: int) -> None:
        self.shelf.change(there.pop("type"), group, {**there, "targetSize": size})
        machines = self.machines(group)
        self._clear(dict(list(machines.items())[size:]))
        for number in range(len(machines), size if self.shortage is None else 0):
            self._boot(group, there, number)

    def _boot(self, group: str, there: dict[str, Any], number: int) -> None:
        link = there["versions"][0]["instanceTemplate"]
        template = self.shelf.get(link.removeprefix(ROOT).partition("?")[0])
        assert template is not None
        zone = _zonal(group, number)
        seed = f"{group} {number} {time.monotonic_ns()}"
        id_ = f"{zone}/instances/{there['baseInstanceName']}-{hashlib.sha256(seed.encode()).hexdigest()[:4]}"
        props = {
            "group": group,
            "status": "RUNNING",
            # By its name alone: what has made a machine may go before it.
            "template": link.rpartition("/")[2].partition("?")[0],
            "machineType": f"{ROOT}{zone}/machineTypes/{template['machineType']}",
            "labels": template["labels"],
            "scheduling": template["scheduling"],
            "subnetwork": template["networkInterfaces"][0]["subnetwork"],
            "creationTimestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000-00:00", time.gmtime()),
        }
        self.shelf.make("instance", id_, props)

    def supply(self) -> None:
        """Have machines again: groups get those that they went on asking for."""
        self.shortage = None
        for id_, props in self.shelf.things.items():
            if "GroupManager" in props["type"]:
                self._sized(id_, props, int(props["targetSize"]))

    def orphan(self, end: str) -> None:
        """Make a machine like one of a group in its network, and the disk of one that is gone: no group counts them."""
        id_, like = next(iter(self.machines().items()))
        name = f"{id_.rpartition('/')[2][:-4]}{end}"
        zone = f"{id_.partition('/zones/')[0]}/zones/{ZONES[0]}"
        self.shelf.make("instance", f"{zone}/instances/{name}", {**like, "group": ""})
        self.shelf.make("disk", f"{zone}/disks/{name}", {"labels": like["labels"]})

    def _retire(self, group: str, *, query: dict[str, str], said: Any) -> Answer:
        there = self.shelf.get(group)
        if there is None:
            return None
        project = group.partition("/zones/")[0].partition("/regions/")[0]
        asked = {f"{project}/{each}" for each in said["instances"]}
        gone = {id_: each for id_, each in self.machines(group).items() if id_ in asked}
        self._clear(gone)
        self.shelf.change(there.pop("type"), group, {**there, "targetSize": int(there["targetSize"]) - len(gone)})
        return {"status": "RUNNING"}

    def _recreate(self, group: str, *, query: dict[str, str], said: Any) -> Answer:
        """Make machines of a group again, under their names, by its template of now."""
        there, project = self.shelf.get(group), group.partition("/regions/")[0]
        if there is None:
            return None
        for each in said["instances"]:
            id_ = f"{project}/{each}"
            props = self.shelf.get(id_)
            assert props is not None and props["group"] == group
            self.shelf.remove("instance", id_)
            template = there["versions"][0]["instanceTemplate"].rpartition("/")[2].partition("?")[0]
            self.shelf.make("instance", id_, {**props, "template": template})
        return {"status": "RUNNING"}

    def _role(self, name: str, *, query: dict[str, str], said: Any) -> Answer:
        return self.shelf.roles.get(name)

    def _clear(self, machines: dict[str, Any]) -> None:
        for id_ in machines:
            self.shelf.remove("instance", id_)

    # -- buckets -------------------------------------------------------------------------------------------------------

    def _bucket(self, name: str, *, query: dict[str, str], said: Any) -> Answer:
        return self.buckets.get(name)

    def _make_bucket(self, *, query: dict[str, str], said: Any) -> Answer:
        made = {**said, "project": query["project"]}
        self.buckets[said["name"]] = made
        return made

    _COMPUTE = r"compute/v1/"
    _GROUP = r"(projects/[^/]+/regions/[^/]+/instanceGroupManagers/[^/]+)"
    _NAMED = r"(projects/[^/]+/(?:global|(?:regions|zones)/[^/]+)/(?!images)[a-zA-Z]+/[^/]+)"
    _calls: list[tuple[str, str, Callable[..., Answer]]] = [  # noqa: RUF012
        ("GET", r"compute/v1/projects/([^/]+)/aggregated/machineTypes", _types),
        ("GET", r"compute/v1/projects/([^/]+)/aggregated/(instances|disks)", _labelled),
        ("GET", r"compute/v1/projects/([^/]+)/global/images/(family/)?([^/]+)", _image),
        ("GET", r"compute/v1/projects/([^/]+)/global/instanceTemplates", _templates),
        ("POST", _COMPUTE + _GROUP + "/listManagedInstances", _managed),
        ("POST", _COMPUTE + _GROUP + "/resize", _resize),
        ("POST", _COMPUTE + _GROUP + "/deleteInstances", _retire),
        ("POST", _COMPUTE + _GROUP + "/recreateInstances", _recreate),
        ("GET", _COMPUTE + _NAMED, _thing),
        ("DELETE", _COMPUTE + _NAMED, _delete),
        ("GET", r"v1/(projects/[^/]+/serviceAccounts/[^/]+)", _thing),
        ("DELETE", r"v1/(projects/[^/]+/serviceAccounts/[^/]+)", _delete),
        ("GET", r"v1/(projects/[^/]+/roles/[^/]+)", _role),
        ("GET", r"storage/v1/b/([^/]+)", _bucket),
        ("POST", r"storage/v1/b", _make_bucket),
    ]


def _matched(pattern: str, text: str) -> tuple[str, ...]:
    found = re.fullmatch(pattern, text)
    assert found is not None, f"{text!r} is no filter that Google knows"
    return found.groups()


def _zonal(group: str, number: int) -> str:
    """Return the project and the zone of a group's machine."""
    return f"{group.partition('/regions/')[0]}/zones/{ZONES[number % 2]}"

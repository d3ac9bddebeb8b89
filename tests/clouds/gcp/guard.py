"""Lets machines do what Google's IAM allows them: each call of an API, each request for the store."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.bucket import FakeBucket
from tests.bucket.dialect import Answer, Request, error
from tests.clouds.gcp.iam import Asked, Iam
from tests.clouds.gcp.permitted import of_api

#: The token of who applies; and what a machine's begins with.
TOKEN = "ya29.of-tests-alone-1729"
_TOKEN = "ya29.of-a-machine."
#: What the second word of a permission is about, where its type is called otherwise.
_TYPES = {"versions": "SecretVersion"}


def make_token(email: str) -> str:
    """Return the token of a service account, as a machine's metadata tell it."""
    return f"{_TOKEN}{email}"


@dataclass
class Guard:
    """Who asks is known by the token; whoever has no machine's is somebody else, whom this lets through."""

    iam: Callable[[], Iam]
    #: What machines asked for and were refused.
    refused: list[Asked] = field(default_factory=list)

    def refuses_call(self, authorization: str, method: str, path: str) -> Asked | None:
        """Return what of a call of an API is refused; None where nothing is."""
        member = _who(authorization)
        return None if member is None else self._first(member, _of_api(method, path))

    def refuses_request(self, request: Request, *, there: bool) -> Asked | None:
        """Return what of a request for an object is refused; `there`: whether the object is there."""
        member = _who(request.headers.get("authorization", ""))
        return None if member is None else self._first(member, _of_storage(request, there=there))

    def _first(self, member: str, asks: Iterator[Asked]) -> Asked | None:
        iam = self.iam()
        found = next((each for each in asks if not iam.allows(member, each)), None)
        self.refused += [] if found is None else [found]
        return found


class GuardedBucket(FakeBucket):
    """A bucket whose requests by machines pass IAM."""

    def __init__(self, guard: Guard, address: str = "127.0.0.1") -> None:
        """Begin empty."""
        super().__init__(address)
        self.guard = guard

    def answer(self, request: Request) -> Answer | None:
        """See `FakeBucket.answer`."""
        there = self.objects.get(request.key) is not None
        asked = self.guard.refuses_request(request, there=there)
        if asked is not None:
            said = f"{asked.permission} access to the Google Cloud Storage {asked.type.rpartition('/')[2].lower()}"
            return error(403, "AccessDenied", f"the caller does not have {said} {asked.name}")
        return super().answer(request)


def _who(authorization: str) -> str | None:
    token = authorization.removeprefix("Bearer ")
    return f"serviceAccount:{token.removeprefix(_TOKEN)}" if token.startswith(_TOKEN) else None


def _of_api(method: str, path: str) -> Iterator[Asked]:
    """Yield what a call takes; a machine asks for no list."""
    [name] = re.findall(r"projects/[^/]+(?:/(?:global|regions/[^/]+|zones/[^/]+))?/[a-zA-Z]+/[^/?:]+", path)
    version = re.search(r"/versions/[^/:]+", path)
    for permission in of_api(f"{method} {path}"):
        service, kind, _ = permission.split(".")
        type_ = f"{service}.googleapis.com/{_TYPES.get(kind) or kind[0].upper() + kind[1:-1]}"
        yield Asked(permission, type_, f"{name}{version[0] if version else ''}")


def _of_storage(request: Request, *, there: bool) -> Iterator[Asked]:
    bucket = f"projects/_/buckets/{request.bucket}"
    lists = Asked("storage.objects.list", "storage.googleapis.com/Bucket", bucket)
    if not request.key:
        yield lists
        return
    for call in _calls(request, there=there):
        yield Asked(f"storage.{call}", "storage.googleapis.com/Object", f"{bucket}/objects/{request.key}")
    if request.method in ("GET", "HEAD") and not there:
        yield lists  # that there is none is told to those alone who may list


def _calls(request: Request, *, there: bool) -> Iterator[str]:
    """Yield the permissions of a request for an object, as the page "IAM permissions for XML requests" has them."""
    writes = ["objects.create", *(["objects.delete"] if there and not request.if_absent else [])]
    if request.kind == "MULTIPART":
        if request.method in ("DELETE", "GET"):
            yield "multipartUploads.abort" if request.method == "DELETE" else "multipartUploads.listParts"
            return
        yield from ("multipartUploads.create", *writes)
    elif request.method == "DELETE":
        yield "objects.delete"
    else:
        yield from writes if request.method == "PUT" else ["objects.get"]

"""Pulumi's provider protocol, for kinds that a double knows: Check, Diff, Create, Read, Update, Delete, Invoke.

Answers are what the real plugins answer, their errors included. What was asked stands in a ledger of lines.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.provider.experimental.provider import Provider
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime import proto
from pulumi.runtime.proto import status_pb2

from tests.clouds.kind import Kind, Props, Refused, like
from tests.clouds.sdk import UNKNOWN, Sdk, Wrong
from tests.clouds.values import decoded, plain, struct

#: Names a file: what plugins were asked, a line each: "create aws:ec2/vpc:Vpc NAME".
LEDGER = "CLOUD_LEDGER"


class Double(ProviderServicer):
    """A provider of the kinds that it is given."""

    #: As its SDK is called: "pulumi_aws".
    package: str
    #: The token of the provider itself: "pulumi:providers:aws".
    provider: str

    def __init__(self, args: list[str], version: str, engine: str) -> None:
        """Know nothing of its settings yet."""
        super().__init__(args, version, Provider(), engine)
        self.sdk = Sdk(self.package)
        self.kinds: Mapping[str, Kind] = {kind.token: kind for kind in self.known()}
        self.cloud: Any = None

    def known(self) -> list[Kind]:
        """Return the kinds."""
        raise NotImplementedError

    def connect(self, settings: Props) -> Any:
        """Return what kinds talk to their cloud with. Raises Refused where it does not let us in."""
        raise NotImplementedError

    def call(self, token: str, given: Props) -> Props:
        """Carry out a function. Raises Refused."""
        raise Refused(f"the double does not know the function {token}")

    def stamp(self, want: Props) -> Props:
        """Add to arguments what the provider's settings add to all."""
        return want

    async def CheckConfig(self, request: Any, context: Any) -> Any:
        news = plain(request.news)
        failures = self.sdk_refuses(lambda: self.sdk.refuse(self.provider, decoded(news)))
        return proto.CheckResponse(inputs=request.news, failures=_failures(failures))

    async def DiffConfig(self, request: Any, context: Any) -> Any:
        return proto.DiffResponse(changes=proto.DiffResponse.DIFF_NONE)

    async def Configure(self, request: Any, context: Any) -> Any:
        settings = decoded(plain(request.args))
        try:
            self.cloud = await asyncio.to_thread(self.connect, settings)
        except Refused as exc:
            await context.abort(grpc.StatusCode.UNKNOWN, str(exc))
        return proto.ConfigureResponse(acceptSecrets=False, supportsPreview=True, acceptResources=False)

    async def Check(self, request: Any, context: Any) -> Any:
        kind, news, olds = self._kind(request.urn), plain(request.news), plain(request.olds)
        if kind is None:
            failures = [Wrong("", f"the double does not know {_type(request.urn)}")]
            return proto.CheckResponse(inputs=request.news, failures=_failures(failures))
        failures = self.sdk_refuses(lambda: self.sdk.refuse(kind.token, news))
        news = {**kind.defaults, **news}
        if kind.named and kind.named not in news and f"{kind.named}Prefix" not in news:
            digits = hashlib.sha256(request.randomSeed or os.urandom(8)).hexdigest()[:7]
            news[kind.named] = olds.get(kind.named) or f"{_name(request.urn)}-{digits}"
        return proto.CheckResponse(inputs=struct(news), failures=_failures(failures))

    async def Diff(self, request: Any, context: Any) -> Any:
        kind, news = self._must(request.urn), plain(request.news)
        state, olds = plain(request.olds), plain(request.old_inputs)
        ignored = {path.partition(".")[0].partition("[")[0] for path in request.ignoreChanges}
        changed = kind.differing(self.stamp(olds), state, self.stamp(news)) - ignored
        forced = sorted(changed & kind.forces)
        return proto.DiffResponse(
            changes=proto.DiffResponse.DIFF_SOME if changed else proto.DiffResponse.DIFF_NONE,
            diffs=sorted(changed),
            replaces=forced,
            deleteBeforeReplace=bool(forced) and kind.delete_first,
            detailedDiff={name: _difference(name, olds, news, name in kind.forces) for name in sorted(changed)},
            hasDetailedDiff=True,
        )

    async def Create(self, request: Any, context: Any) -> Any:
        kind, want = self._must(request.urn), plain(request.properties)
        if request.preview:
            return proto.CreateResponse(id="", properties=struct(self._foreseen(kind, want)))
        self._note("create", request.urn)
        try:
            id_ = await asyncio.to_thread(kind.make, self.cloud, self.stamp(want))
        except Refused as exc:
            return await self._fail(context, f"creating {kind.words}", exc)
        try:
            await asyncio.to_thread(kind.finish, self.cloud, id_, self.stamp(want))
            state = await self._state(kind, id_, want)
        except Refused as exc:
            return await self._fail_half(context, kind, id_, want, exc)
        return proto.CreateResponse(id=id_, properties=struct(state))

    async def Read(self, request: Any, context: Any) -> Any:
        kind, inputs = self._must(request.urn), plain(request.inputs)
        self._note("read", request.urn)
        try:
            found = await asyncio.to_thread(kind.read, self.cloud, request.id)
        except Refused as exc:
            return await self._fail(context, f"reading {kind.words} ({request.id})", exc)
        if found is None:
            return proto.ReadResponse(id="")
        kept = {name: inputs[name] for name in kind.only_here if name in inputs}
        state = self._checked(kind, {**kept, **found})
        known = {name: value for name, value in state.items() if name in self.sdk.names(kind.token) and value}
        refreshed = {
            name: value if kind.same(name, state.get(name), value) else like(value, state[name])
            for name, value in inputs.items()
            if name in state
        }
        return proto.ReadResponse(id=request.id, properties=struct(state), inputs=struct(refreshed or known))

    async def Update(self, request: Any, context: Any) -> Any:
        kind, want = self._must(request.urn), plain(request.news)
        if request.preview:
            foreseen = {**plain(request.olds), **want, **dict.fromkeys(kind.renewed, UNKNOWN)}
            return proto.UpdateResponse(properties=struct(foreseen))
        self._note("update", request.urn)
        old, new = plain(request.olds), self.stamp(want)
        changed = kind.differing(self.stamp(plain(request.old_inputs)), old, new)
        try:
            await asyncio.to_thread(kind.change, self.cloud, request.id, old, new, changed)
            state = await self._state(kind, request.id, want)
        except Refused as exc:
            return await self._fail(context, f"updating {kind.words} ({request.id})", exc)
        return proto.UpdateResponse(properties=struct(state))

    async def Delete(self, request: Any, context: Any) -> Any:
        kind = self._must(request.urn)
        self._note("delete", request.urn)
        try:
            await asyncio.to_thread(kind.remove, self.cloud, request.id, plain(request.properties))
        except Refused as exc:
            return await self._fail(context, f"deleting {kind.words} ({request.id})", exc)
        return empty_pb2.Empty()

    async def Invoke(self, request: Any, context: Any) -> Any:
        given = plain(request.args)
        failures = self.sdk_refuses(lambda: self.sdk.refuse_call(request.tok, given))
        if failures:
            return proto.InvokeResponse(failures=_failures(failures))
        try:
            answer = await asyncio.to_thread(self.call, request.tok, given)
        except Refused as exc:
            return await self._fail(context, f"invocation of {request.tok}", exc)
        return proto.InvokeResponse(**{"return": struct(answer)})

    def sdk_refuses(self, ask: Callable[[], list[Wrong]]) -> list[Wrong]:
        """Return what the SDK's classes refuse, be it the whole."""
        try:
            return ask()
        except (KeyError, AttributeError, ImportError) as exc:
            return [Wrong("", f"{self.package} {self.sdk.version} has no {exc}")]

    async def _state(self, kind: Kind, id_: str, want: Props) -> Props:
        found = await asyncio.to_thread(kind.read, self.cloud, id_)
        if found is None:
            raise Refused(f"reading {kind.words} ({id_}): couldn't find resource")
        kept = {name: value for name, value in want.items() if name in kind.only_here or name not in found}
        return self._checked(kind, {**found, **kept})

    def _checked(self, kind: Kind, state: Props) -> Props:
        extra = state.keys() - self.sdk.outputs(kind.token) - {"id"}
        assert not extra, f"the double's own mistake: {kind.token} has no {', '.join(sorted(extra))}"
        return {name: value for name, value in state.items() if value is not None and value != {} and value != []}

    def _foreseen(self, kind: Kind, want: Props) -> Props:
        return {**dict.fromkeys(self.sdk.outputs(kind.token), UNKNOWN), **want}

    async def _fail(self, context: Any, doing: str, exc: Refused) -> Any:
        await context.abort(grpc.StatusCode.UNKNOWN, _told(doing, exc))

    async def _fail_half(self, context: Any, kind: Kind, id_: str, want: Props, exc: Refused) -> Any:
        """Say that it is there, and not whole: Pulumi writes that down."""
        reason = _told(f"creating {kind.words} ({id_})", exc)
        detail = proto.ErrorResourceInitFailed(id=id_, properties=struct(want), reasons=[reason], inputs=struct(want))
        status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=reason)
        status.details.add().Pack(detail)
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        await context.abort(grpc.StatusCode.UNKNOWN, reason)

    def _kind(self, urn: str) -> Kind | None:
        return self.kinds.get(_type(urn))

    def _must(self, urn: str) -> Kind:
        kind = self._kind(urn)
        assert kind is not None, f"{_type(urn)} was not checked"
        return kind

    def _note(self, what: str, urn: str) -> None:
        if LEDGER in os.environ:
            with Path(os.environ[LEDGER]).open("a") as ledger:
                ledger.write(f"{what} {_type(urn)} {_name(urn)}\n")


def serve(double: type[Double], argv: list[str]) -> None:
    """Be the plugin: say at which port, and serve until one is ended."""

    async def run() -> None:
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", 64 << 20)])
        servicer = double(argv, Sdk(double.package).version, argv[0])
        proto.provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        print(port, flush=True)
        await server.wait_for_termination()

    asyncio.run(run())


def _told(doing: str, exc: Refused) -> str:
    """Return an error as a bridged provider tells it."""
    return f"1 error occurred:\n\t* {doing}: {exc}\n\n"


def _failures(wrong: list[Wrong]) -> list[Any]:
    return [proto.CheckFailure(property=each.path, reason=each.why) for each in wrong]


def _difference(name: str, olds: Props, news: Props, forces: bool) -> Any:
    kinds = proto.PropertyDiff
    if name not in olds:
        kind = kinds.ADD_REPLACE if forces else kinds.ADD
    elif name not in news:
        kind = kinds.DELETE_REPLACE if forces else kinds.DELETE
    else:
        kind = kinds.UPDATE_REPLACE if forces else kinds.UPDATE
    return proto.PropertyDiff(kind=kind, inputDiff=False)


def _type(urn: str) -> str:
    return urn.split("::")[2].rpartition("$")[2]


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]

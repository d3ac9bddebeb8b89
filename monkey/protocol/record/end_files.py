"""Files in ends: what an attempt wrote rides in its end where that is little, as each object more costs money.

There are three parts: the log, the files of metrics, and the samples of what the attempt used. A part that an end does
not have is in objects of its own, as all parts are where a request costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from monkey.protocol import entry_shape
from monkey.protocol.wakeup import SELDOM
from monkey.store.format import FILES_IN_ENDS
from monkey.store.store_port import Store

#: Bytes that the files in one end have together, at most.
MAX_END_FILES = 32 * 1024


class EndFiles(NamedTuple):
    """The files in an end; None for a part that it does not have."""

    log: bytes | None = None
    #: The name of a file in $MONKEY_METRICS_DIR to its bytes.
    metrics: Mapping[str, bytes] | None = None
    samples: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes of all of them, and of their names."""
        metrics = sum(len(name.encode()) + len(data) for name, data in (self.metrics or {}).items())
        return metrics + len(self.log or b"") + len(self.samples or b"")

    def to_json(self) -> dict[str, Any]:
        """Return what `unpack_end_files` reads; any bytes survive it."""
        packed: dict[str, Any] = {}
        if self.log is not None:
            packed["log"] = _pack(self.log)
        if self.metrics is not None:
            packed["metrics"] = {name: _pack(data) for name, data in self.metrics.items()}
        if self.samples is not None:
            packed["samples"] = _pack(self.samples)
        return packed


def _pack(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _unpack(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _is_packed(value: Any) -> bool:
    try:
        return entry_shape.is_text(value) and _unpack(value) is not None
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        return False


def _is_packed_map(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_packed, value.values()))


_SHAPE = {"log": _is_packed, "metrics": _is_packed_map, "samples": _is_packed}


def is_end_files(value: Any) -> bool:
    """Is it what `EndFiles.to_json` returns? Raises MalformedEntry where a part of it is not."""
    if isinstance(value, dict):
        entry_shape.check_shape(value, _SHAPE)
    return isinstance(value, dict)


def unpack_end_files(packed: Mapping[str, Any]) -> EndFiles:
    """Return the files of an end whose shape was checked."""
    texts = {name: _unpack(packed[name]) for name in ("log", "samples") if name in packed}
    metrics = {name: _unpack(text) for name, text in packed["metrics"].items()} if "metrics" in packed else None
    return EndFiles(texts.get("log"), metrics, texts.get("samples"))


def may_have_files(store: Store) -> bool:
    """May ends hold files in this store? Where each request costs money, and each agent knows such ends."""
    return store.layout >= FILES_IN_ENDS and store.poll >= SELDOM

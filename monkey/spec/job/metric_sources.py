"""`metrics: from`: what else the metrics of a job are read from: event files, its output, tables.

It is no part of a job's identity. It only reads what the job does anyway, so another pattern makes no result another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value, make_mistake_error, suggest_word

#: What a source may be.
SOURCE_KINDS = ("tensorboard", "stdout", "csv")
#: Sources of one sweep, and characters of a pattern.
_MAX_SOURCES, _MAX_PATTERN = 20, 1000
#: Groups of a pattern that are no metrics by themselves.
_STEP_GROUPS = frozenset({"step", "iteration", "epoch"})
#: What an editor is told of `metrics:`.
SOURCES_SCHEMA: dict[str, Any] = {
    "description": "What else the jobs' metrics are read from, besides monkey.log.",
    "type": "object",
    "properties": {
        "from": {
            "type": "array",
            "minItems": 1,
            "maxItems": _MAX_SOURCES,
            "description": "Event files of TensorBoard, patterns in what jobs print, CSV files.",
            "items": {
                "anyOf": [
                    {"const": "tensorboard"},
                    *(
                        {
                            "type": "object",
                            "properties": {kind: {"type": "string", "minLength": 1, "description": text}},
                            "required": [kind],
                            "additionalProperties": False,
                        }
                        for kind, text in {
                            "tensorboard": "A directory with event files, below the job's own.",
                            "stdout": "A regular expression; its named groups are metrics, `step` the step.",
                            "csv": "A file or a glob, below the job's directories.",
                        }.items()
                    ),
                ]
            },
        }
    },
    "required": ["from"],
    "additionalProperties": False,
    "examples": [{"from": ["tensorboard", {"stdout": r"val_acc=(?P<val_acc>\S+)"}, {"csv": "log.csv"}]}],
}
_EXAMPLE = "write [tensorboard, {stdout: 'val_acc=(?P<val_acc>\\S+)'}, {csv: log.csv}]"


@dataclass(frozen=True)
class MetricSource:
    """One source: its kind, and a path, a glob or a pattern; "" for all event files."""

    kind: str
    what: str = ""

    def to_json(self) -> dict[str, str]:
        """Return what `from_json` reads."""
        return {self.kind: self.what}

    @classmethod
    def from_json(cls, data: Mapping[str, str]) -> MetricSource:
        """Read what `to_json` wrote."""
        ((kind, what),) = data.items()
        return cls(kind, what)

    def words(self) -> str:
        """Say it in a line: "tensorboard", "csv log.csv"."""
        return f"{self.kind} {self.what}".rstrip()


def parse_metric_sources(raw: Any) -> list[MetricSource]:
    """Read `metrics:` of a spec. Raises MistakesError."""
    if not isinstance(raw, dict) or list(raw) != ["from"]:
        hint = f"{_EXAMPLE} below `from:`; where metrics are sent stands in monkey.yaml"
        raise make_mistake_error(f"expected {{from: […]}}, found {describe_value(raw)}", hint)
    listed = raw["from"]
    listed = [listed] if isinstance(listed, str | dict) else listed
    if not isinstance(listed, list) or not 0 < len(listed) <= _MAX_SOURCES:
        raise make_mistake_error(f"expected a list of 1 to {_MAX_SOURCES} sources", _EXAMPLE, ("from",))
    sources, mistakes = [], []
    for at, item in enumerate(listed):
        try:
            sources.append(_parse_source(item))
        except MistakesError as error:
            mistakes += [mistake.under(("from", at)) for mistake in error.mistakes]
    if mistakes:
        raise MistakesError(mistakes)
    return sources


def _parse_source(raw: Any) -> MetricSource:
    if raw == "tensorboard":
        return MetricSource("tensorboard")
    if not isinstance(raw, dict) or len(raw) != 1 or not isinstance(next(iter(raw)), str):
        raise make_mistake_error(f"expected a source, found {describe_value(raw)}", _EXAMPLE)
    ((kind, what),) = raw.items()
    if kind not in SOURCE_KINDS:
        raise MistakesError([Mistake((kind,), f"unknown source {kind!r}", suggest_word(kind, SOURCE_KINDS, "sources"))])
    if not isinstance(what, str) or not what.strip():
        raise make_mistake_error(f"expected text, found {describe_value(what)}", _EXAMPLE)
    problem = _check_pattern(what) if kind == "stdout" else _check_path(what)
    if problem:
        raise MistakesError([Mistake((kind,), *problem)])
    return MetricSource(kind, what)


def _check_path(path: str) -> tuple[str, str] | None:
    if path.startswith(("/", "~")) or ".." in path.split("/") or "\n" in path:
        return f"expected a path below the job's directories, found {path!r:.80}", "write a relative path"
    return None


def _check_pattern(pattern: str) -> tuple[str, str] | None:
    if len(pattern) > _MAX_PATTERN:
        return f"expected a pattern of at most {_MAX_PATTERN:,} characters", "split it into several"
    try:
        groups = set(re.compile(pattern).groupindex)
    except (re.error, OverflowError, RecursionError) as exc:
        return f"the pattern cannot be read: {exc}", "it is a regular expression of Python"
    if not groups:
        return "the pattern has no named group", r"name the metric: loss=(?P<loss>\S+)"
    if {"name", "value"} & groups and not groups >= {"name", "value"}:
        return "a pattern with one of the groups `name` and `value` needs both", "name the metric by its own group"
    return None

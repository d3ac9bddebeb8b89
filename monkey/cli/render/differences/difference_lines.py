"""A difference of two jobs or revisions in lines, bounded: what is cut is counted."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from monkey.cli.render.differences.code_lines import format_code
from monkey.cli.terminal.text import (
    Terminal,
    flatten_text,
    format_cell,
    format_elapsed,
    format_plural,
    lay_out_table,
    make_printable,
)
from monkey.plan.explain import format_setting_change
from monkey.plan.jobs.job_changes import SettingChange
from monkey.plan.sizes import format_size
from monkey.results.differences.data_difference import DataChange
from monkey.results.differences.difference import Difference, PartDifference
from monkey.results.differences.line_diff import TooDifferent, compare_lines
from monkey.results.differences.value_change import NO_VALUE, HiddenText, ValueChange
from monkey.spec.command.command import format_argument

#: Rows of a part that are shown, values of a parameter, and characters of a value that stands in a table.
_MAX_ROWS, _MAX_VALUES, _MAX_CELL = 40, 12, 60
#: Columns that are left for names and for what a value differs by.
_MAX_NAME = 30
_NONE = "–"
_HASH = re.compile(r"[0-9a-f]{32,64}(\.dir)?").fullmatch
_TITLES = {"space": "parameters", "lock": "packages", "usage": "time and resources"}
_USAGE = {"memory_bytes": "peak memory", "gpu_memory_bytes": "peak GPU memory", "gpu_percent": "GPUs busy %"}


def format_difference(found: Difference, to: Terminal, *, everything: bool) -> list[str]:
    """Return what differs, part by part; `everything`: cut nothing."""
    lines = [f"{to.paint(side, 'bold')}  {_describe(one)}" for side, one in (("A", found.before), ("B", found.after))]
    parts = {part.name: _format_part(part, to, everything=everything) for part in found.parts}
    results = [name for name in ("machine", "metrics", "usage", "result", "outputs") if name in parts]
    ordered = [(_TITLES.get(name, name), parts[name]) for name in parts if name not in results]
    ordered = [("jobs", _format_jobs(found, to)), *ordered] if found.jobs else ordered
    for title, inside in ordered:
        lines += _lay_out_part(title, inside, to)
    if found.code:
        lines += ["", *format_code(found.code, to, everything=everything)]
    if found.data:
        lines += _lay_out_part("data", _format_data(found.data, to, everything=everything), to)
    for name in results:
        lines += _lay_out_part(_TITLES.get(name, name), parts[name], to)
    lines += ["", *(to.paint(f"! {flatten_text(note)}", "yellow") for note in found.notes)] if found.notes else []
    return lines if found.has_other_inputs else [*lines, "", _conclude(found)]


def _conclude(found: Difference) -> str:
    if found.kind == "revision":
        return "Both want the same: nothing differs."
    return "All inputs are equal." if found.parts else "Nothing that is recorded differs."


def _describe(one: Mapping[str, Any]) -> str:
    """Return a side as it may be typed, and what else names it."""
    name = f"{one['sweep']}@{one['revision']}" + (f"/{one['job']}" if "job" in one else "")
    commit = f"commit {one['commit'][:12]}{', with changes' if one['dirty'] else ''}" if one.get("commit") else ""
    applied = f"applied {one['at']} by {one['author']}" if one.get("at") else ""
    return flatten_text("  ".join(filter(None, (name, one.get("state"), applied, commit))))


def _lay_out_part(title: str, lines: Iterable[str], to: Terminal) -> list[str]:
    return ["", to.paint(title, "bold"), *(f"  {line}" for line in lines)]


def _format_part(part: PartDifference, to: Terminal, *, everything: bool) -> list[str]:
    shown = part.changes if everything else part.changes[:_MAX_ROWS]
    if part.name == "settings":
        lines = [_format_setting(one) for one in shown]
    elif part.name == "space":
        lines = [line for one in shown for line in _format_space(one, to, everything=everything)]
    else:
        lines = _format_values(part, shown, to, everything=everything)
    return lines + _count_rest(len(part.changes) - len(shown), to)


def _count_rest(count: int, to: Terminal) -> list[str]:
    return [to.paint(f"… and {count:,} more; --all shows them", "dim")] if count else []


def _format_values(part: PartDifference, shown: Sequence[ValueChange], to: Terminal, *, everything: bool) -> list[str]:
    """Return short values in a table, and after it each long one as the lines that differ."""
    rows, blocks = [], list[str]()
    # A cell that is cut could look like the one beside it.
    most = _MAX_CELL if to.width is None else min(_MAX_CELL, (to.width - _MAX_NAME) // 2)
    for one in shown:
        name, sides = _USAGE.get(one.name, one.name), (one.before, one.after)
        texts = [_spell_measure(one.name, side) if part.measured else _spell(side) for side in sides]
        texts = list(map(_shorten_hash, sides)) if part.name == "outputs" else texts
        if not part.measured and _look_alike(*texts):
            texts = list(map(_quote, sides))
        if any(len(text) > most or "\n" in text for text in texts):
            blocks += [
                flatten_text(name),
                *(f"  {line}" for line in _format_texts(one, texts, to, everything=everything)),
            ]
        else:
            step = _spell_step(one) if part.measured and one.step is not None else ""
            rows.append([name, *texts, *([step] if part.measured else [])])
    heads = ["", "A", "B", *(["DIFFERENCE"] if part.measured else [])]
    inside = Terminal(to.width and to.width - 2, to.colour, to.ascii)
    return [*lay_out_table(heads, rows, inside, right=[False] + [part.measured] * (len(heads) - 1)), *blocks]


def _format_texts(one: ValueChange, texts: Sequence[str], to: Terminal, *, everything: bool) -> list[str]:
    """Return the lines that differ in two texts, one value of which is long."""
    given = [
        b"" if side is NO_VALUE else text.encode(errors="replace")
        for side, text in zip((one.before, one.after), texts, strict=True)
    ]
    try:
        lines = [line for line in compare_lines(*given) if line[0] in "-+"]
    except TooDifferent:
        return [" → ".join(format_size(len(text)) for text in given) + ", too different to compare line by line"]
    shown = lines if everything else lines[:_MAX_ROWS]
    signs = {"-": "red", "+": "green"}
    painted = [to.paint(f"{line[0]} {flatten_text(line[1:])}", signs[line[0]]) for line in shown]
    return painted + _count_rest(len(lines) - len(shown), to)


def _spell_measure(name: str, value: Any) -> str:
    """Return a value that was measured, with the digits that count: how much it differs stands beside it."""
    if name == "seconds" and isinstance(value, int | float):
        return format_elapsed(value)
    if name in ("memory_bytes", "gpu_memory_bytes") and isinstance(value, int | float):
        return format_size(value)
    return format_cell(value) if isinstance(value, float) else _spell(value)


def _spell(value: Any) -> str:
    """Return a value so that others look otherwise: with all its digits."""
    if value is NO_VALUE:
        return _NONE
    if not isinstance(value, str):
        return flatten_text(format_argument(value))
    if "\n" in value.rstrip():
        return make_printable(value).replace("\t", " ")
    # An empty cell, or what a terminal does not draw, would be read as another value.
    return value if value == value.strip() and value.isprintable() and value not in ("", _NONE) else _quote(value)


def _quote(value: Any) -> str:
    """Return a value as JSON, in ASCII: no two of them look alike."""
    return _spell(value) if value is NO_VALUE or isinstance(value, HiddenText) else json.dumps(value)


def _look_alike(one: str, other: str) -> bool:
    """Would people read the same? So "1" is 1, and an accent of its own is a part of its letter."""
    return unicodedata.normalize("NFKC", one) == unicodedata.normalize("NFKC", other)


def _spell_listed(value: Any) -> str:
    """Return one of several values: quoted where it could be another type's, or more than one."""
    return _quote(value) if isinstance(value, str) and (", " in value or _is_json(value)) else _spell(value)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _shorten_hash(value: Any) -> str:
    return value[:12] if isinstance(value, str) and _HASH(value) else _spell(value)


def _spell_step(one: ValueChange) -> str:
    step = one.step or 0.0
    if one.name in ("seconds", "memory_bytes", "gpu_memory_bytes"):
        return ("-" if step < 0 else "+") + _spell_measure(one.name, abs(step))
    return f"{step:+.6g}"


def _format_setting(one: ValueChange) -> str:
    if isinstance(one.before, HiddenText) or isinstance(one.after, HiddenText):
        return flatten_text(f"{one.name} {_spell(one.before)} → {_spell(one.after)}")
    return flatten_text(format_setting_change(SettingChange(one.name, one.before, one.after)))


def _format_space(one: ValueChange, to: Terminal, *, everything: bool) -> list[str]:
    """Return the values of a parameter that one side alone has, a line a side."""
    name, lines = flatten_text(one.name), list[str]()
    for values, other, sign, colour in ((one.before, one.after, "-", "red"), (one.after, one.before, "+", "green")):
        if values is NO_VALUE or not (values or other is NO_VALUE):
            continue
        shown = values if everything else values[:_MAX_VALUES]
        more = f" … {len(values):,} values" if len(shown) < len(values) else ""
        alone = " (a parameter of this side alone)" if other is NO_VALUE else ""
        text = ", ".join(map(_spell_listed, shown))
        lines.append(to.paint(f"{sign} {name}: {flatten_text(text)}{more}{alone}", colour))
    return lines


def _format_jobs(difference: Difference, to: Terminal) -> list[str]:
    found, lines = difference.jobs, list[str]()
    assert found is not None  # whoever asks knows
    for sign, what, jobs, words, colour in (
        ("+", "added", found.added, found.added_words, "green"),
        ("-", "removed", found.removed, found.removed_words, "red"),
    ):
        if jobs:
            lines.append(to.paint(f"{sign} {format_plural(len(jobs), 'job')} {what}", colour))
            lines += [f"    {flatten_text(line)}" for line in words]
    if found.changed:
        count = format_plural(len(found.changed), "job")
        spaces = [one for part in difference.parts if part.name == "space" for one in part.changes]
        alone = any(one.before is NO_VALUE or one.after is NO_VALUE for one in spaces)
        same = "equal in the parameters that both sides have" if alone else "the same parameters by another recipe"
        lines.append(to.paint(f"~ {count} changed: {same}", "yellow"))
    return lines + ([to.paint(f"= {format_plural(found.same, 'job')} in both", "dim")] if found.same else [])


def _format_data(changes: Sequence[DataChange], to: Terminal, *, everything: bool) -> list[str]:
    lines = []
    for one in changes:
        hashes = " → ".join(_shorten_hash(each) if each else _NONE for each in (one.before, one.after))
        lines.append(flatten_text(f"{one.name}  {hashes}" + (f"  ({one.trouble})" if one.trouble else "")))
        files = [("+", path, "green") for path in one.added] + [("-", path, "red") for path in one.removed]
        files += [("~", path, "yellow") for path in one.changed]
        shown = files if everything else files[:_MAX_ROWS]
        lines += [f"  {to.paint(f'{sign} {flatten_text(path)}', colour)}" for sign, path, colour in shown]
        lines += [f"  {line}" for line in _count_rest(len(files) - len(shown), to)]
    return lines

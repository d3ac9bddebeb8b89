"""The fields of the form: what of a spec's values they show, and how a field's change becomes one of the text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from monkey.errors import MonkeyError, SpecError
from monkey.spec.sweep.json_schema import build_spec_schema
from monkey.spec.yaml.document import parse_document
from monkey.spec.yaml.spec_edit import SpecEdit, spell_flow

#: The forms of a parameter that the form offers; all others are edited in the text.
_FORMS = ("values", "range", "value")
_BOUNDS = {"min", "max", "distribution"}


class FormField(NamedTuple):
    """A field that the form shows."""

    path: tuple[str, ...]
    label: str
    #: What it holds: "text", "number" or one of `options`.
    kind: str = "text"
    options: tuple[str, ...] = ()
    hint: str = ""


def _list_fields(providers: Iterable[str]) -> list[FormField]:
    return [
        FormField(("name",), "Name"),
        FormField(("command",), "Command", hint="{lr} stands for the parameter lr"),
        FormField(("method",), "Method", "choice", ("grid", "random")),
        FormField(("run_cap",), "Jobs at most", "number", hint="of a random search: its draws"),
        FormField(("seed",), "Seed of the draws", "number"),
        FormField(("metric", "name"), "Metric"),
        FormField(("metric", "goal"), "Goal", "choice", ("minimize", "maximize")),
        FormField(("provider",), "Provider", "choice", tuple(providers)),
        FormField(("resources", "cpus"), "CPUs of a job", "number"),
        FormField(("resources", "gpus"), "GPUs of a job", "number"),
        FormField(("resources", "memory"), "Memory of a job", hint="2GiB"),
        FormField(("max_concurrent_jobs",), "Jobs at once", "number"),
        FormField(("max_retries",), "Retries of a job", "number"),
        FormField(("timeout",), "Timeout of a job", hint="30m, 2h"),
        FormField(("expires",), "Sweep expires", hint="12h, 3d"),
    ]


def serialize_form(text: str, providers: Iterable[str]) -> dict[str, Any] | None:
    """Return the fields and parameters of a text; None for a text that is no YAML mapping."""
    try:
        data = SpecEdit(text).data
    except ValueError:
        return None
    fields = [_serialize_field(each, _find_value(data, each.path)) for each in _list_fields(providers)]
    parameters = data.get("parameters")
    listed = parameters.items() if isinstance(parameters, dict) else ()
    return {"fields": fields, "parameters": [_serialize_parameter(name, raw) for name, raw in listed]}


def _serialize_field(field: FormField, value: Any) -> dict[str, Any]:
    # What a field cannot hold is shown as YAML, and becomes that again.
    is_text = isinstance(value, str) or (value is None and field.kind != "number")
    kind = field.kind if is_text or field.kind == "number" else "yaml"
    if kind == "choice" and value is not None and value not in field.options:
        kind = "text"
    shown = "" if value is None else value if isinstance(value, str) else spell_flow(value)
    return {**field._asdict(), "kind": kind, "value": shown}


def _serialize_parameter(name: str, raw: Any) -> dict[str, Any]:
    """Return how the form shows a parameter: by its form, and the text of each of its parts."""
    shown: dict[str, Any] = {"name": name, "form": "other", "text": spell_flow(raw), "more": ""}
    if isinstance(raw, list):
        return {**shown, "form": "values", "text": spell_flow(raw)[1:-1]}
    if not isinstance(raw, dict):
        return {**shown, "form": "value"}
    more = {key: raw[key] for key in raw.keys() & {"when", "else", "probabilities"}}
    main = raw.keys() - more.keys()
    shown["more"] = ", ".join(f"{key}: {spell_flow(more[key])}" for key in sorted(more, reverse=True))
    for form in _FORMS:
        if main == {form} and (form == "value" or isinstance(raw[form], list)):
            spelled = spell_flow(raw[form])
            return {**shown, "form": form, "part": form, "text": spelled if form == "value" else spelled[1:-1]}
    if {"min", "max"} <= main <= _BOUNDS and isinstance(raw.get("distribution", ""), str):
        bounds = {"min": spell_flow(raw["min"]), "max": spell_flow(raw["max"])}
        return {**shown, "form": "between", "distribution": raw.get("distribution", ""), **bounds}
    return shown


def apply_edit(text: str, edit: Mapping[str, Any]) -> str:
    """Return the text with one change; the rest of it stays as it is, with its comments. Raises MonkeyError.

    `edit` has a `path`: a list of keys. To put a value there, it has `yaml`, as users write a value, or `text`. To
    rename the key, it has `name`. Without these, the key is removed.
    """
    path = edit.get("path")
    if not isinstance(path, list) or not path or not all(isinstance(step, str) for step in path):
        raise MonkeyError("expected a path of keys in an edit")
    try:
        editor = SpecEdit(text, _list_keys())
    except ValueError as exc:
        raise MonkeyError("the text is no YAML that a form can change", hint="correct the text first") from exc
    changed = _change(editor, tuple(path), edit)
    if changed is None:
        raise MonkeyError(f"{'.'.join(path)[:200]}: this cannot be changed by the form", hint="change it in the text")
    return changed


def _change(editor: SpecEdit, path: tuple[str, ...], edit: Mapping[str, Any]) -> str | None:
    if "name" in edit:
        return editor.rename_key(path, str(edit["name"]))
    if "text" in edit:
        return editor.put_value(path, str(edit["text"]))
    if "yaml" in edit:
        written = str(edit["yaml"])
        return editor.put_value(path, _parse_value(written, path), written)
    return editor.remove_key(path)


@cache
def _list_keys() -> list[str]:
    """Return the keys of a spec, in the order in which its documentation has them."""
    return list(build_spec_schema()["properties"])


def _parse_value(written: str, path: tuple[str, ...]) -> Any:
    if "\n" in written:
        raise MonkeyError(f"{'.'.join(path)[:200]}: expected a value on one line", hint="change it in the text")
    try:
        # On a line of its own: as a list in a list it may be of any kind.
        return parse_document(f"value:\n  {written}\n", "").data["value"]
    except SpecError as exc:
        problem = exc.problems[0]
        raise MonkeyError(f"{'.'.join(path)[:200]}: {problem.message}", hint=problem.hint) from exc


def _find_value(data: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    return data

"""From a file to a Spec, with all of its mistakes at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from monkey.spec import document
from monkey.spec.checks import Checks
from monkey.spec.explain import explain
from monkey.spec.mistake import Mistake, describe
from monkey.spec.models import NAME, Spec
from monkey.spec.planned import not_yet

_HINTS = {
    "command": "add a line such as: command: python train.py --lr {lr}",
    "name": "add a line such as: name: digits",
}

#: Fields that cannot be checked where `parameters` is no mapping at all.
_NEED_NAMES = {"command", "zip", "include", "exclude", "env", "outputs"}


def load_spec(path: Path, root: Path) -> Spec:
    """Read the sweep in `path`, of the project at `root`. Raises SpecError with all that is wrong."""
    try:
        source = path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        source = str(path)
    return _spec(document.read(path, source), root, path.stem)


def parse_spec(text: str, source: str, root: Path) -> Spec:
    """Read a spec's text, such as a revision holds; `source` is the path that errors name."""
    return _spec(document.parse(text, source), root, Path(source).stem)


def _spec(file: document.Document, root: Path, stem: str) -> Spec:
    if not isinstance(file.data, dict):
        found = describe(file.data)
        raise file.error(
            [Mistake((), f"expected a mapping, found {found}", "write key: value lines; see: monkey init")]
        )
    data, mistakes = not_yet(file.data)
    if NAME.match(stem):
        data.setdefault("name", stem)
    spec, invalid = _validate(data)
    mistakes += invalid
    bad = {str(m.path[0]) for m in mistakes if m.path} | ({"command"} if "command" not in data else set())
    doubtful: set[str] = set()
    if spec is None:
        sound, doubtful = _sound(data, invalid)
        spec, _ = _validate(sound)
    if spec is not None:
        checks = Checks(spec, doubtful, root)
        nameless = "parameters" in bad and not isinstance(data.get("parameters"), dict)
        mistakes += checks.all(bad - {"parameters"} | (_NEED_NAMES if nameless else set()))
        spec._document, spec._requirements = file, checks.requirements_text
    if mistakes or spec is None:
        raise file.error(mistakes)
    return spec


def _validate(data: dict[str, Any]) -> tuple[Spec | None, list[Mistake]]:
    try:
        return Spec.model_validate(data), []
    except ValidationError as error:
        return None, explain(error, Spec, _HINTS)


def _sound(data: dict[str, Any], mistakes: list[Mistake]) -> tuple[dict[str, Any], set[str]]:
    """Leave out what is wrong, so that the rest can be checked; return it and the parameters left out."""
    bad = {m.path[0] for m in mistakes if m.path}
    sound = {key: value for key, value in data.items() if key not in bad}
    sound.setdefault("command", "true")
    sound.setdefault("name", "unnamed")
    parameters = data.get("parameters")
    doubtful = {str(m.path[1]) for m in mistakes if m.path[:1] == ("parameters",) and len(m.path) > 1}
    if "parameters" in bad and isinstance(parameters, dict):
        sound["parameters"] = {key: value for key, value in parameters.items() if key not in doubtful}
    return sound, {name.split(".")[0] for name in doubtful}

"""The parts of a spec that can be checked despite its mistakes: all are reported at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from monkey.spec.yaml.mistakes import Mistake


@dataclass
class ValidPart:
    """A spec's values without those that are wrong."""

    data: dict[str, Any]
    #: Fields that are left out whole.
    lost: set[str] = field(default_factory=set)
    #: Top names of parameters that are left out.
    doubtful: set[str] = field(default_factory=set)
    #: Of a list that lost items, where the others stood.
    kept: dict[str, list[int]] = field(default_factory=dict)

    def place(self, mistake: Mistake) -> Mistake:
        """Return a mistake found in these values as one of the whole file."""
        match mistake.path:
            case (str(key), int(at), *rest) if key in self.kept and at < len(self.kept[key]):
                return replace(mistake, path=(key, self.kept[key][at], *rest))
        return mistake


def extract_valid_part(
    data: dict[str, Any], mistakes: Sequence[Mistake], invalid: Callable[[dict[str, Any]], set[str]]
) -> ValidPart:
    """Leave out no more than what is wrong; `invalid` says which fields would be so without it."""
    sound = ValidPart({**data})
    for key in {str(m.path[0]) for m in mistakes if m.path}:
        _remove_invalid(sound, key, [m.path[1] for m in mistakes if m.path[:1] == (key,) and len(m.path) > 1],
               whole=any(m.path == (key,) and key != "parameters" for m in mistakes))  # fmt: skip
    if "command" not in data:
        sound.lost.add("command")
    for key, filler in (("command", "true"), ("name", "unnamed")):
        sound.data.setdefault(key, filler)
    for key in invalid(sound.data) - {"command", "name"}:
        sound.lost.add(key)
        sound.data.pop(key, None)
        sound.kept.pop(key, None)
    return sound


def _remove_invalid(sound: ValidPart, key: str, wrong: list[str | int], *, whole: bool) -> None:
    raw = sound.data.get(key)
    if key == "command" and isinstance(raw, list) and wrong:
        # Words are what they are by their places.
        sound.data[key] = [word if isinstance(word, str | int) else "word" for word in raw]
    elif isinstance(raw, dict) and not whole:
        sound.data[key] = {name: value for name, value in raw.items() if name not in wrong}
        if key in ("parameters", "repeat"):
            sound.doubtful |= {str(name).split(".")[0] for name in wrong}
    elif isinstance(raw, list) and wrong and not whole:
        sound.kept[key] = [at for at in range(len(raw)) if at not in wrong]
        sound.data[key] = [raw[at] for at in sound.kept[key]]
    else:
        sound.lost.add(key)
        sound.data.pop(key, None)

"""Values that two sides have under the same names: those that differ, with secrets left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, NamedTuple

from monkey.metrics.summary import is_finite
from monkey.plan.text.credential_forms import find_credential
from monkey.plan.text.value_keys import make_value_key


class HiddenText(str):
    """What is shown in place of a value that is not."""

    __slots__ = ()


HIDDEN = HiddenText("(secret)")


class NoValue(Enum):
    """The one thing that stands for no value: None is a value that parameters have."""

    NO_VALUE = "no value"


NO_VALUE = NoValue.NO_VALUE


class ValueChange(NamedTuple):
    """A name whose value differs; `NO_VALUE` for a side that has none."""

    name: str
    before: Any
    after: Any

    @property
    def step(self) -> float | None:
        """How much more the second side has; None unless both have finite numbers."""
        pair = (self.before, self.after)
        if any(isinstance(one, bool) or not isinstance(one, int | float) or not is_finite(one) for one in pair):
            return None
        try:
            return float(self.after - self.before)
        except OverflowError:  # jobs log whole numbers of any length
            return None

    def to_json(self) -> dict[str, Any]:
        """Return it for programs: a side without a value has no key."""
        sides = {"a": self.before, "b": self.after}
        return {"name": self.name, **{side: value for side, value in sides.items() if value is not NO_VALUE}}


def compare_values(
    before: Mapping[str, Any], after: Mapping[str, Any], secrets: Collection[str] = ()
) -> list[ValueChange]:
    """Return the names whose values differ, in the order of the second side.

    The values of names in `secrets`, and values that hold a known credential, differ without being shown.
    """
    found = []
    for name in dict.fromkeys((*after, *before)):
        old, new = before.get(name, NO_VALUE), after.get(name, NO_VALUE)
        if old is NO_VALUE or new is NO_VALUE or make_value_key(old) != make_value_key(new):
            found.append(ValueChange(name, mask_value(name, old, secrets), mask_value(name, new, secrets)))
    return found


def mask_value(name: str, value: Any, secrets: Collection[str] = ()) -> Any:
    """Return the value, or what is shown in its place: its name is in `secrets`, or it holds a known credential."""
    if value is NO_VALUE:
        return value
    if name in secrets:
        return HIDDEN
    held = find_credential(f"{name}={value}".encode(errors="replace"))
    return HiddenText(f"(not shown: it holds {held})") if held else value

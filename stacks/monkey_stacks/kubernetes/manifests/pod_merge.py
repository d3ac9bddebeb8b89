"""The user's part of a pod, merged into ours as Kubernetes merges patches: lists of named things by name. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: What tells the elements of a list apart, the first that all of them have.
_KEYS = ("mountPath", "name")


def merge_pod(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return `ours` with what `theirs` says instead or besides; null takes a key out."""
    merged = {key: value for key, value in ours.items() if theirs.get(key, value) is not None}
    for key, value in theirs.items():
        if value is not None:
            merged[key] = _merge_value(merged.get(key), value)
    return merged


def _merge_value(ours: Any, theirs: Any) -> Any:
    if isinstance(theirs, Mapping):
        return merge_pod(ours if isinstance(ours, Mapping) else {}, theirs)
    if isinstance(ours, list) and isinstance(theirs, list):
        return _merge_lists(ours, theirs)
    return theirs


def _merge_lists(ours: Sequence[Any], theirs: Sequence[Any]) -> list[Any]:
    both = [*ours, *theirs]
    key = next((key for key in _KEYS if all(isinstance(each, Mapping) and key in each for each in both)), None)
    if key is None:
        return list(theirs)
    named = {each[key]: each for each in ours}
    for each in theirs:
        named[each[key]] = merge_pod(named.get(each[key], {}), each)
    return list(named.values())

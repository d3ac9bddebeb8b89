"""What is in a dataset: the list that DVC writes for a directory. It comes from the store, so it may be anything."""

from __future__ import annotations

import hashlib
import json
import re

from monkey.errors import CorruptObject
from monkey.transfer.code.code_manifest import MAX_TREE_DEPTH

#: What names a dataset: the MD5 of a file, or of a directory's list.
OID = re.compile(r"[0-9a-f]{32}(\.dir)?\Z")
_MD5 = re.compile(r"[0-9a-f]{32}\Z")


def spell_object_key(oid: str) -> str:
    """Return where the store has an object: DVC's layout of a remote. Raises CorruptObject where `oid` names none."""
    if not OID.match(oid):
        raise CorruptObject(oid, "expected an MD5 of 32 hex digits, with .dir behind it for a directory")
    return f"files/md5/{oid[:2]}/{oid[2:]}"


def parse_listing(oid: str, data: bytes) -> dict[str, str]:
    """Return path → MD5 of all files of the directory `oid`; raises CorruptObject where `data` is not it, or not sane.

    No path leads out, names a file twice, or lies below a file: writing them all stays inside.
    """
    if hashlib.md5(data, usedforsecurity=False).hexdigest() != oid.removesuffix(".dir"):
        raise CorruptObject(spell_object_key(oid), "its bytes have another MD5")
    files: dict[str, str] = {}
    for item in _items(oid, data):
        path, md5 = item.get("relpath"), item.get("md5")
        if not isinstance(path, str) or not isinstance(md5, str) or not _MD5.match(md5):
            raise CorruptObject(spell_object_key(oid), f"expected a path and an MD5, found {str(item)[:80]}")
        if why := _refusal(path, files):
            raise CorruptObject(spell_object_key(oid), f"{path[:80]!r} {why}")
        files[path] = md5
    for path in list_directories(files):
        if path in files:
            raise CorruptObject(spell_object_key(oid), f"{path[:80]!r} is a file and a directory")
    return files


def list_directories(files: dict[str, str]) -> list[str]:
    """Return all directories that the files are in, those above before those below; not the root."""
    found: dict[str, None] = {}
    for path in files:
        parent = path.rpartition("/")[0]
        missing = []
        while parent and parent not in found:
            missing.append(parent)
            parent = parent.rpartition("/")[0]
        found.update(dict.fromkeys(reversed(missing)))
    return list(found)


def _items(oid: str, data: bytes) -> list[dict[str, object]]:
    try:
        items = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise CorruptObject(spell_object_key(oid), f"expected a directory's list as JSON ({str(exc)[:80]})") from exc
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise CorruptObject(spell_object_key(oid), "expected a list of files")
    return items


def _refusal(path: str, files: dict[str, str]) -> str:
    if path in files:
        return "comes twice"
    if "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        return "is no path inside"
    try:
        path.encode()
    except UnicodeEncodeError:
        return "is not UTF-8"
    return "lies too deep" if path.count("/") > MAX_TREE_DEPTH else ""

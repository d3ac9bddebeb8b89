"""The spec files of `specs/` that the page reads and writes: whole, and only if they are what was opened."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monkey.apply.world.desired_state import SPECS, YAML, read_specs
from monkey.atomic_write import create_atomically, write_atomically
from monkey.errors import MonkeyError, NotFound, Problem, SpecError
from monkey.spec.project.project import Project
from monkey.spec.yaml.document import parse_document, read_document_text
from monkey.spec.yaml.mistakes import Mistake

#: Bytes of a spec that the page edits: larger ones are lists that programs wrote.
MAX_TEXT_BYTES = 256 * 1024
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.ya?ml")


@dataclass(frozen=True)
class OpenedSpec:
    """A spec's text with "\\n" as line ends, and the hash of the file that it was read from."""

    text: str
    #: "" for a file that does not exist.
    base: str


class SpecConflict(MonkeyError):
    """The file is another one than was opened."""

    def __init__(self, message: str, found: OpenedSpec) -> None:
        """Keep also what the file has now."""
        self.found = found
        super().__init__(message, hint="take the file's text, or keep yours and save again")


class SpecFolder:
    """The folder `specs/` of a project."""

    def __init__(self, project: Project) -> None:
        """Read nothing yet."""
        self._project = project
        #: The names in files, by path, with what told that a file is as it was.
        self._names: dict[Path, tuple[tuple[int, int], str]] = {}

    def list_specs(self) -> list[dict[str, str]]:
        """Return the files that may be edited, and the name of the sweep in each. Raises OSError."""
        return [{"file": path.name, "name": name} for path, name in self._list_names() if not path.is_symlink()]

    def _list_names(self) -> Iterator[tuple[Path, str]]:
        """Yield the files, each with the name that it gives its sweep: "" where that cannot be read."""
        for path in sorted((self._project.root / SPECS).glob("*")):
            if path.suffix in YAML and _FILE_NAME.fullmatch(path.name) and path.is_file():
                yield path, self._read_name(path)

    def _read_name(self, path: Path) -> str:
        about = path.stat()
        seen = about.st_mtime_ns, about.st_size
        if self._names.get(path, (None,))[0] != seen:
            try:
                data = parse_document(read_document_text(path, path.name, self._project.root), path.name).data
                name = data.get("name", path.stem)
            except (SpecError, AttributeError):
                name = ""
            self._names[path] = seen, name if isinstance(name, str) else ""
        return self._names[path][1]

    def locate(self, file: str) -> Path:
        """Return the path of a file by its name. Raises NotFound for what is no spec's name, or leads elsewhere."""
        if not _FILE_NAME.fullmatch(file):
            raise NotFound(
                f"expected a file of {SPECS}/ that ends in .yaml or .yml, found {file[:200]!r}",
                hint="use letters, digits, '.', '_' and '-'",
            )
        path = self._project.root / SPECS / file
        if os.path.realpath(path) != str(Path(os.path.realpath(self._project.root), SPECS, file)):
            raise NotFound(f"{SPECS}/{file} is a link, or in a link", hint="edit what it leads to, by an editor")
        return path

    def open_spec(self, file: str) -> OpenedSpec:
        """Return the text of a file. Raises NotFound, and SpecError for a file that is no text or too large."""
        found = self._read(self.locate(file))
        if not found.base:
            raise NotFound(f"there is no {SPECS}/{file}", hint="it may have been removed, or renamed")
        return found

    def _read(self, path: Path) -> OpenedSpec:
        if not os.path.lexists(path):
            return OpenedSpec("", "")
        source = f"{SPECS}/{path.name}"
        text = read_document_text(path, source, self._project.root)
        check_size(text, source)
        return OpenedSpec(text.replace("\r\n", "\n"), hash_text(text))

    def check_spec(self, file: str, text: str) -> dict[str, Any]:
        """Check a text as `monkey validate` checks a spec; return its values.

        Raises SpecError with all that is wrong, and MonkeyError for data where it may not be.
        """
        path = self.locate(file)
        source = f"{SPECS}/{file}"
        check_size(text, source)
        (spec,) = read_specs(self._project, [path], {path: text})
        for other, name in self._list_names():
            if name == spec.name and other.name != file:
                what = f"two specs are named {name!r}: this one and {SPECS}/{other.name}"
                raise spec.document.error([Mistake(("name",), what, "give this one another `name:`")])
        data: dict[str, Any] = spec.document.data
        return data

    def save_spec(self, file: str, text: str, base: str) -> OpenedSpec:
        """Write a text that is valid to the file if that is still the one of the hash `base` ("": none is there).

        Raises SpecConflict where it is not, SpecError for a text that is not valid, and OSError.
        """
        path = self.locate(file)
        self.check_spec(file, text)
        found = self._read(path)
        if found.base != base:
            raise SpecConflict(_describe_conflict(file, base, found), found)
        if not base:
            path.parent.mkdir(exist_ok=True)
            if not create_atomically(path, text):
                found = self._read(path)
                raise SpecConflict(_describe_conflict(file, base, found), found)
            return OpenedSpec(text, hash_text(text))
        written = text.replace("\n", "\r\n") if b"\r\n" in path.read_bytes() else text
        write_atomically(path, written, mode=stat.S_IMODE(path.stat().st_mode), durable=True)
        return OpenedSpec(text, hash_text(written))


def _describe_conflict(file: str, base: str, found: OpenedSpec) -> str:
    what = "was changed" if base and found.base else "was removed" if base else "exists"
    return f"{SPECS}/{file} {what} meanwhile, so nothing was written"


def check_size(text: str, source: str) -> None:
    """Raise SpecError for a text that is too large for the page."""
    if len(text.encode(errors="replace")) > MAX_TEXT_BYTES:
        message = f"the page edits specs of at most {MAX_TEXT_BYTES >> 10} KiB"
        raise SpecError([Problem(source, 1, 1, message, "edit it by an editor; or write ranges, not lists")])


def hash_text(text: str) -> str:
    """Return the hash of a file's text."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()

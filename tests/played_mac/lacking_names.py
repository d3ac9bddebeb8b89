"""Names that Python has on Linux and lacks on Darwin, by typeshed: its checks compare these stubs with Python on a Mac.

CPython's documentation says the same under "Availability", for fewer names, and not for all constants.
"""

from __future__ import annotations

import ast
import importlib.metadata
import sys
from pathlib import Path
from types import SimpleNamespace

#: Module of C that has the names → the stub that lists them. `os`, `socket` and `signal` take theirs from these.
_STUBS = {
    "posix": "os/__init__.pyi",
    "_socket": "_socket.pyi",
    "_signal": "signal.pyi",
    "errno": "errno.pyi",
    "fcntl": "fcntl.pyi",
    "mmap": "mmap.pyi",
    "resource": "resource.pyi",
    "select": "select.pyi",
    "termios": "termios.pyi",
    "time": "time.pyi",
}


def list_lacking_names() -> dict[str, list[str]]:
    """Return what Python lacks on Darwin, by the module of C that has it on Linux."""
    stubs = Path(str(importlib.metadata.distribution("mypy").locate_file("mypy/typeshed/stdlib")))
    found = {}
    for module, stub in _STUBS.items():
        tree = ast.parse((stubs / stub).read_text())
        found[module] = sorted(_names(tree.body, "linux") - _names(tree.body, "darwin"))
    return found


def _names(body: list[ast.stmt], platform: str) -> set[str]:
    """Return the names that these statements of a stub define on a platform."""
    found: set[str] = set()
    for statement in body:
        match statement:
            case ast.If():
                found |= _names(statement.body if _holds(statement.test, platform) else statement.orelse, platform)
            case ast.FunctionDef() | ast.ClassDef():
                found.add(statement.name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.Assign():
                found |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
            case ast.Import() | ast.ImportFrom():
                found |= {alias.asname or alias.name for alias in statement.names}
    return found


def _holds(test: ast.expr, platform: str) -> bool:
    """Say whether a stub's condition holds: all of them are of `sys` alone."""
    played = SimpleNamespace(platform=platform, version_info=sys.version_info)
    return bool(eval(ast.unparse(test), {"sys": played, "TYPE_CHECKING": True}))  # noqa: S307 - typeshed's own words

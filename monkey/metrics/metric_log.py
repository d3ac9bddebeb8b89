"""`monkey.log`: a record leaves the training process in one write, and can do that process no harm.

Each process appends to a file of its own in $MONKEY_METRICS_DIR, unbuffered. A logged record stays logged even if the
process is killed in the next instant. There is no thread, no lock, no network and no exception. Records that cannot be
written are counted, and reported once on stderr. `monkey.metrics.summary` describes the lines.

It runs under a job's Python: 3.7 or newer. A test holds it to that.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterable, Mapping
from math import isfinite
from os import write
from pathlib import Path
from time import time_ns
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import SupportsIndex  # since 3.8

#: Longest name that is recorded, in characters.
MAX_NAME = 200
#: Number of names whose encoded form is kept: a job that invents names all the time must not grow by it.
_REMEMBERED = 1_000
#: A record with fewer names than this has its template kept.
_TOGETHER = 100
#: Digits that a rank may have, at most.
_DIGITS = 9
#: Number of distinct sentences on stderr: a loop that makes a new mistake each time must not fill the job's log.
_SENTENCES = 20


def log(name: str | Mapping[str, Any], value: Any = None, step: SupportsIndex | None = None) -> None:
    """Record one metric, `log("loss", 0.3, step=10)`, or several of a step, `log({"loss": 0.3, "acc": 0.9}, step=10)`.

    Values are numbers, or what `float()` turns into one: scalars of numpy, torch and jax; no text. They are recorded
    exactly, and whole numbers stay whole, of any size. NaN and infinities are recorded as such, and shown, but are
    never a job's best value. `step` is the epoch or iteration, an integer that may be left out. It never raises, and
    waits only for the local disk. Outside of a job it records nothing, and says so on stderr.
    """
    # Each operation here shows in benchmarks/log.py. One template a name, filled by one operation, costs half of what
    # an f-string does; 17 digits, which are as exact, a third less than a float's shortest repr; nanoseconds and an
    # exponent, which is JSON too, a third of a float of seconds; __class__ half of type(). Whatever is unusual raises
    # or falls through, and goes the slow way: so do floats of 17 digits before the point, which the template would end
    # with it ("10000000000000000."), and that is no JSON.
    try:
        if value.__class__ is float and -1e16 < value < 1e16:
            if step.__class__ is int:
                line = _stepped[name] % (value, step, time_ns())  # type: ignore[index]  # a dict raises TypeError
            elif step is None:
                line = _plain[name] % (value, time_ns())  # type: ignore[index]  # likewise
            else:
                raise TypeError
            if write(_sink.fd, line) != len(line):
                _sink.tear()
            return
        if type(step) is int and _several(name if value is None else {name: value}, step):
            return
    except Exception:
        pass
    try:
        _sink.record(name if isinstance(name, Mapping) else {name: value}, step)
    except Exception as exc:
        _sink.drop(f"{type(exc).__name__}: {exc}")


def _several(metrics: Any, step: int) -> bool:
    """Record a dict the fast way if its values are plain finite numbers, and one of these names and types came before.

    Returns False, or raises any exception, where that is not so.
    """
    values = tuple(metrics.values())
    line = _joint[(*metrics, *map(type, values))] % (*values, step, time_ns())
    if not all(map(isfinite, values)) or b".," in line or b".}" in line:
        return False
    if write(_sink.fd, line) != len(line):
        _sink.tear()
    return True


#: Names to the templates of their lines: of one name with a step, of one without, of several with a step. They are
#: empty while the fast way is closed: there is no file yet, or its last line is torn.
_stepped: dict[str, bytes] = {}
_plain: dict[str, bytes] = {}
_joint: dict[tuple[str | type, ...], bytes] = {}
#: How plain numbers are written. The # keeps a whole float one: 3.0000000000000000, not 3.
_EXACT = {float: "%#.17g", int: "%d"}


def _remember(names: tuple[str, ...], values: Iterable[Any]) -> None:
    kinds = tuple(map(type, values))
    if len(names) == 1 and len(_stepped) < _REMEMBERED:
        body = _body(names, (float,))
        _stepped[names[0]] = f'{{"m":{body},"step":%d,"t":%de-9}}\n'.encode()
        _plain[names[0]] = f'{{"m":{body},"step":null,"t":%de-9}}\n'.encode()
    if len(_joint) < _REMEMBERED and len(names) < _TOGETHER and _EXACT.keys() >= set(kinds):
        _joint[(*names, *kinds)] = f'{{"m":{_body(names, kinds)},"step":%d,"t":%de-9}}\n'.encode()


def _body(names: tuple[str, ...], kinds: tuple[type, ...]) -> str:
    pairs = zip(names, kinds)  # noqa: B905  # `strict` came with 3.10
    return "{" + ",".join(f"{_quoted(name)}:{_EXACT[kind]}" for name, kind in pairs) + "}"


def _forget() -> None:
    for templates in (_stepped, _plain, _joint):
        templates.clear()


class _Sink:
    """The metrics file of this process, opened by its first record."""

    def __init__(self) -> None:
        self.said: set[str] = set()
        self.begin()

    def begin(self) -> None:
        self.fd = -1
        self.opened = False
        self.reopened = False
        self.torn = False
        self.dropped = 0
        _forget()

    def forked(self) -> None:
        """Start over in a forked child: leave the parent's file to the parent, and do not repeat its sentences."""
        if self.fd >= 0:
            os.close(self.fd)
        self.begin()

    def record(self, metrics: Mapping[Any, Any], step: Any) -> None:
        """Write one line with all values of `metrics` that can be recorded."""
        parts = []
        for name, value in metrics.items():
            text = self.checked(name, value)
            if text:
                parts.append(f"{json.dumps(name)}:{text}")
        if not parts:
            return
        at = self.step(step)
        line = f'{{"m":{{{",".join(parts)}}},"step":{"null" if at is None else at},"t":{time_ns()}e-9}}\n'
        if self.append(line.encode()) and len(parts) == len(metrics):
            _remember(tuple(metrics), metrics.values())

    def checked(self, name: Any, value: Any) -> str:
        """Return the value as JSON, or "" (and say why) where the name or the value cannot be recorded."""
        if not is_metric_name(name):
            self.say(f"a name must be a string of 1 to {MAX_NAME} printable characters, not {name!r:.80}")
            return ""
        try:
            return _text(_number(value))
        except Exception:
            self.say(f"the value of {name!r} must be a number, not {type(value).__name__} {value!r:.80}")
            return ""

    def step(self, step: Any) -> int | None:
        if step is None or type(step) is int:
            return step
        try:
            number = step.item() if hasattr(step, "item") else step
            whole = int(number)
            if whole != number:
                raise ValueError
        except Exception:
            self.say(f"step must be an integer, not {type(step).__name__} {step!r:.80}; recorded without it")
            return None
        return whole

    def append(self, line: bytes) -> bool:
        """Append a line, after a newline if the last line is torn; return whether all of it was written."""
        if not self.opened:
            self.open()
        if self.fd < 0:
            return False
        data = b"\n" + line if self.torn else line
        try:
            whole = write(self.fd, data) == len(data)
        except OSError as exc:
            if exc.errno == errno.EBADF and not self.reopened:
                # Training closed all its files, as daemons do.
                self.opened, self.reopened = False, True
                return self.append(line)
            self.drop(str(exc))
            return False
        if not whole:
            self.tear()
        self.torn = not whole
        return whole

    def open(self) -> None:
        """Create the file. Two threads may both do so at first: then the process has two files, and both are read."""
        fd = -1
        directory = os.environ.get("MONKEY_METRICS_DIR")
        if not directory:
            self.say("not in a job of a sweep, metrics are not recorded (`monkey run -- COMMAND` makes a job of it)")
        else:
            try:
                Path(directory).mkdir(parents=True, exist_ok=True)
                fd = _create(directory)
            except OSError as exc:
                self.say(f"metrics are not recorded: {exc}")
        # In this order: another thread that sees it opened must find the file.
        self.fd = fd
        self.opened = True

    def tear(self) -> None:
        """Note that the file took only a part of a record; close the fast way, so that the next begins a new line."""
        self.torn = True
        _forget()
        self.drop("only a part of it could be written")

    def drop(self, why: str) -> None:
        if not self.dropped:
            import atexit

            atexit.register(self.total)
            self.say(f"a record is lost: {why} (the job goes on; further losses are counted)")
        self.dropped += 1

    def total(self) -> None:
        self.say(f"records lost: {self.dropped}")

    def say(self, sentence: str) -> None:
        """Print a sentence once on stderr; `warnings` would not do, as a job may turn these into exceptions."""
        if sentence in self.said or len(self.said) >= _SENTENCES:
            return
        self.said.add(sentence)
        try:
            print(f"monkey.log: {sentence}", file=sys.stderr, flush=True)
        except Exception:
            return


def _create(directory: str) -> int:
    """Create this process's file in `directory`, named by its rank, and return the descriptor. Raises OSError.

    The rank is the launcher's number (torchrun: RANK), else `0`. Further processes of a rank add their PID: `0.PID`.
    """
    rank = os.environ.get("RANK", "")
    rank = rank if rank.isascii() and rank.isdigit() and len(rank) <= _DIGITS else "0"
    taken = 0
    while True:
        name = rank if not taken else f"{rank}.{os.getpid()}" if taken == 1 else f"{rank}.{os.getpid()}.{taken}"
        try:
            return os.open(f"{directory}/{name}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        except FileExistsError:
            taken += 1


def is_metric_name(name: object) -> bool:
    """Return whether it is a short, printable string that can be encoded. (Half a surrogate pair is not printable.)"""
    return isinstance(name, str) and 0 < len(name) <= MAX_NAME and name.isprintable()


def _quoted(name: str) -> str:
    """Return the name as JSON, escaped for a template."""
    return json.dumps(name).replace("%", "%%")


def _number(value: Any) -> int | float:
    """Return the value as a number; raise where it is none. A string is none: "0.3" is more often a mistake."""
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError
    if not isinstance(value, (float, int)):
        # torch warns when a tensor that requires gradients becomes a number; numpy when an array of one does.
        if hasattr(value, "detach"):
            value = value.detach()
        if hasattr(value, "item"):
            value = value.item()
    # 0 +: int() and float() of a subclass may be one again, with a repr of its own.
    if isinstance(value, int):
        return 0 + int(value)
    try:
        return 0.0 + float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _text(number: float) -> str:
    """Return the number as exact JSON; NaN and infinities in quotes, as JSON has no such numbers."""
    try:
        text = repr(number)
    except ValueError:  # Python writes, and reads, no whole numbers of more than 4,300 digits
        text = "inf" if number > 0 else "-inf"
    return f'"{text}"' if text in ("nan", "inf", "-inf") else text


_sink = _Sink()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_sink.forked)

"""The arguments of `monkey-agent`."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from monkey.errors import StoreError
from monkey.fleet.agent_state import make_host_name
from monkey.protocol.layout import PROJECT_NAME
from monkey.spec.job.counted_resources import CountedResources, read_counts
from monkey.spec.job.image_reference import is_image_digest
from monkey.spec.job.lease_length import LEASE, parse_lease
from monkey.spec.job.runtime_kind import RUNTIME_KINDS
from monkey.spec.project.mounts import Mount, read_mounts
from monkey.spec.yaml.mistakes import MistakesError
from monkey.spec.yaml.units import parse_size
from monkey.store.open import locate_url


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="monkey-agent", description="Run jobs from a store until no work is left.")
    parser.add_argument("--store", required=True, type=_store, help="URL or directory of the store")
    parser.add_argument("--project", required=True, type=_name, help="project whose sweeps to run")
    parser.add_argument(
        "--fleet", default="local", type=_name, help="provider in monkey.yaml that this agent belongs to"
    )
    parser.add_argument(
        "--name",
        default=make_host_name(),
        type=_name,
        help="agent name, unique per machine and fleet (default: host name)",
    )
    parser.add_argument(
        "--mounts",
        type=_mounts,
        default=(),
        metavar="JSON",
        help='what must be mounted for jobs to begin: {"/data": "nas:/export"}, "" for anything (default: nothing)',
    )
    _add_limits(parser)
    parser.add_argument(
        "--state", type=Path, metavar="DIRECTORY", help="state directory (default: derived from the store)"
    )
    parser.add_argument("--cache", type=Path, metavar="DIRECTORY", help="cache directory (default: the user's)")
    parser.add_argument(
        "--beside",
        type=Path,
        metavar="DIRECTORY",
        action="append",
        default=[],
        help="state directory of another agent here; resources its jobs use stay reserved",
    )
    _add_images(parser)
    parser.add_argument(
        "--cloud", choices=("aws", "gcp"), help="cloud of this rented machine, which ends when the agent leaves"
    )
    parser.add_argument(
        "--signers", type=Path, metavar="FILE", help="list of trusted signers and their owner (default: the user's)"
    )
    parser.add_argument("--gate", action="store_true", help="wait for the log file's path on stdin before starting")
    return parser.parse_args(argv)


def _add_images(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runtime", choices=RUNTIME_KINDS, help="program that runs images (default: the first that works here)"
    )
    parser.add_argument(
        "--own-image",
        type=_own_image,
        metavar="DIGEST|none",
        help="digest of the image in which this agent runs: run only its jobs, here; none: only jobs without an image",
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-slots", type=_count, help="maximum number of jobs at once (default: as many as fit)")
    parser.add_argument(
        "--gpus",
        type=_gpus,
        metavar="auto|none|0,2",
        help="auto: skip GPUs in use by other processes; none; or a list of indices (default: all)",
    )
    parser.add_argument(
        "--resources",
        type=_counts,
        default=(),
        metavar="tpu=4,licence=2",
        help="resources that are only counted, and how many this machine has (default: none)",
    )
    parser.add_argument(
        "--cache-size",
        type=_size,
        default=os.environ.get("MONKEY_CACHE_SIZE"),
        metavar="SIZE",
        help="maximum size of the cache: 200GiB (default: half of the disk)",
    )
    _add_times(parser)


def _add_times(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--idle-timeout",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="seconds without work before the agent leaves",
    )
    parser.add_argument(
        "--lease",
        type=_lease,
        default=LEASE,
        metavar="SECONDS",
        help="seconds that the agent may be silent before others take its jobs over: 90 to 600 (default: 90)",
    )
    parser.add_argument(
        "--leave-at",
        type=_moment,
        default=float("inf"),
        metavar="EPOCH_SECONDS",
        help="when to release its jobs and leave, as this machine's time is over (default: never)",
    )
    parser.add_argument(
        "--pilot-time",
        type=_moment,
        metavar="SECONDS",
        help="seconds that this machine has in all, for messages (default: those until --leave-at)",
    )


def _store(text: str) -> str:
    try:
        locate_url(text)
    except StoreError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc
    return text


def _name(text: str) -> str:
    if not PROJECT_NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"expected letters, digits, '.', '_' and '-', found {text!r}")
    return text


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of jobs from 1 on, found {text!r}")
    return int(text)


def _moment(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, found {text!r}")


def _lease(text: str) -> float:
    try:
        return parse_lease(float(text) if text.replace(".", "", 1).isdigit() else text)
    except MistakesError as error:
        raise argparse.ArgumentTypeError(error.mistakes[0].message) from error


def _gpus(text: str) -> str | frozenset[int]:
    if text == "auto":
        return text
    if text == "none":
        return frozenset()
    if not all(number.isdigit() for number in text.split(",")):
        raise argparse.ArgumentTypeError(f"expected 'auto', 'none' or numbers as 0,2, found {text!r}")
    return frozenset(map(int, text.split(",")))


def _own_image(text: str) -> str:
    if text != "none" and not is_image_digest(text):
        raise argparse.ArgumentTypeError(f"expected 'none' or sha256: and 64 hexadecimal digits, found {text!r}")
    return "" if text == "none" else text


def _counts(text: str) -> CountedResources:
    try:
        return read_counts(text)
    except MistakesError as error:
        raise argparse.ArgumentTypeError(error.mistakes[0].message) from error


def _mounts(text: str) -> tuple[Mount, ...]:
    try:
        return read_mounts(text)
    except MistakesError as error:
        raise argparse.ArgumentTypeError(error.mistakes[0].message) from error
    except (ValueError, TypeError) as error:
        raise argparse.ArgumentTypeError(f"expected a JSON object of paths and sources, found {text!r}") from error


def _size(text: str) -> int:
    try:
        return parse_size(int(text) if text.isdigit() else text)
    except MistakesError as error:
        raise argparse.ArgumentTypeError(error.mistakes[0].message) from error

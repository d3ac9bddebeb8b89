"""Kinds of programs that run containers, as `runtime:` of a provider names them."""

from __future__ import annotations

from typing import Literal, get_args

#: In the order in which a machine looks for them: those without a daemon first.
RuntimeKind = Literal["apptainer", "podman", "docker", "charliecloud"]
RUNTIME_KINDS: tuple[RuntimeKind, ...] = get_args(RuntimeKind)

# ruff: noqa: PTH100, PTH120
# Paths are plain strings here: supervisors start without pathlib.
"""Processes as the kernel shows them, and their end. Standard library only: supervisors start with it."""

from __future__ import annotations

import os

#: The directory of the package `monkey`, where a supervisor that starts without `site` finds it.
PACKAGE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

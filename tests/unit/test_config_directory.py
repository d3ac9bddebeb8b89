"""Where the user's configuration is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monkey.config_directory import locate_config_directory
from monkey.fleet.secret_values import SecretValues


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_CONFIG_HOME": "/c", "HOME": "/h"}, "/c/monkey"),
        ({"XDG_CONFIG_HOME": "c", "HOME": "/h"}, "/h/.config/monkey"),
        ({"HOME": "/h"}, "/h/.config/monkey"),
        ({"HOME": ""}, "/.config/monkey"),
        ({}, "/.config/monkey"),
    ],
)
def test_it_is_below_what_the_environment_names(environ: dict[str, str], expected: str) -> None:
    assert locate_config_directory(environ) == Path(expected)
    assert SecretValues(environ).file == Path(expected, "secrets")


def test_ours_is_never_the_developers_in_tests() -> None:
    assert locate_config_directory() == Path(os.environ["XDG_CONFIG_HOME"], "monkey")
    assert not locate_config_directory().is_relative_to(Path.home())


def test_without_a_variable_it_is_in_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert locate_config_directory() == tmp_path / ".config/monkey"

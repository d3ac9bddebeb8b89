"""The frame: verbs found lazily, help without weight, every failure as words and an exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from monkey.cli.help import ELSEWHERE, VERBS, compose_help
from monkey.cli.main import run_guarded
from monkey.cli.registry import VerbRegistry, monkey_command

MODULE, SCRIPT = [sys.executable, "-m", "monkey"], [str(Path(sys.executable).with_name("monkey"))]
ALL = [verb for verbs in VERBS.values() for verb in verbs]


def shell(command: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash with `monkey_command` on its PATH."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": path, **env}
    )


@pytest.mark.parametrize("verb", [verb for verb in ALL if verb != "agent"])
def test_every_verb_has_its_file_and_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded([verb, "--help"]) == 0
    assert f"monkey {verb}" in capsys.readouterr().out


def test_help_is_answered_without_click() -> None:
    code = "import sys; from monkey.cli.main import run_guarded; run_guarded(['--help']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: monkey")
    for heavy in ("click", "re", "typing", "asyncio", "pydantic", "rich", "subprocess"):
        assert f"'{heavy}'" not in done.stdout


def test_help_names_every_verb_and_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    for asked in ([], ["-h"], ["--help"], ["help"], ["-C", ".", "--help"]):
        assert run_guarded(asked) == 0
        assert capsys.readouterr().out == compose_help()
    assert all(f"  {verb} " in compose_help() for verb in ALL)
    assert max(map(len, compose_help().splitlines())) <= 80


def test_help_of_a_verb_may_be_asked_as_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(["help", "plan"]) == run_guarded(["plan", "--help"]) == 0
    out = capsys.readouterr().out
    assert out[: len(out) // 2] == out[len(out) // 2 :]


def test_a_missing_subcommand_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(["list"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: `monkey list` needs a subcommand\nhint: write one of: instances, jobs, ")


def test_init_keeps_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("ours")
    assert run_guarded(["init"]) == 0
    assert Path("train.py").read_text() == "ours" and Path("specs/experiment.yaml").exists()
    files = "monkey.yaml, specs/experiment.yaml, specs/schema.json, .gitignore"
    assert f"Wrote 4 files: {files}.\nKept train.py.\n" in capsys.readouterr().out
    assert run_guarded(["init"]) == 1
    assert "nothing was written" in capsys.readouterr().err


def test_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    from monkey.version import __version__

    assert run_guarded(["--version"]) == run_guarded(["-C", ".", "--version"]) == 0
    assert capsys.readouterr().out == f"monkey {__version__}\n" * 2


def test_unknown_verb_is_told_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(["aply"]) == 1
    assert capsys.readouterr().err == "error: there is no verb 'aply'\nhint: did you mean `monkey apply`?\n"


@pytest.mark.parametrize(("word", "verb"), [("ls", "status"), ("ps", "status"), ("top", "status"), ("stop", "cancel")])
def test_what_other_tools_call_a_verb_is_told(word: str, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded([word, "sweep"]) == 1
    assert capsys.readouterr().err == f"error: there is no verb {word!r}\nhint: did you mean `monkey {verb}`?\n"


def test_words_of_other_tools_lead_to_verbs() -> None:
    assert set(ELSEWHERE.values()) <= set(ALL)
    assert not set(ELSEWHERE) & set(ALL)


def test_the_package_is_the_command() -> None:
    for words in (["--version"], ["-C", ".", "aply"]):
        ours = [subprocess.run([*how, *words], capture_output=True, text=True) for how in (MODULE, SCRIPT)]
        assert (ours[0].stdout, ours[0].stderr) == (ours[1].stdout, ours[1].stderr)
        assert ours[0].stdout or ours[0].stderr


def test_help_begins_with_what_is_used_each_day() -> None:
    *daily, rest = VERBS.values()
    assert len([verb for verbs in daily for verb in verbs]) == 15 and len(rest) > 15


def test_wrong_usage_is_1_since_2_means_changes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(["plan", "--nonsense"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: No such option")
    assert "`monkey plan --help`" in error


def test_directory_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(["-C", "/nonexistent", "status"]) == 1
    assert "cannot work in '/nonexistent'" in capsys.readouterr().err


def test_bug_is_reported_as_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(self: VerbRegistry, ctx: object, name: str) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(VerbRegistry, "get_command", broken)
    assert run_guarded(["plan", "a b"]) == 1
    error = capsys.readouterr().err
    assert "ZeroDivisionError: boom (" in error
    assert "MONKEY_DEBUG=1 monkey plan 'a b'" in error
    assert "Traceback" not in error
    monkeypatch.setenv("MONKEY_DEBUG", "1")
    assert run_guarded(["plan"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: VerbRegistry, ctx: object, name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(VerbRegistry, "get_command", interrupted)
    assert run_guarded(["plan"]) == 130


def test_closed_pipe_is_quiet() -> None:
    done = shell("set -o pipefail; monkey schema | head -c 1; echo ${PIPESTATUS[0]}")
    assert done.stdout.splitlines()[-1] in ("{141", "{0")
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this platform")
def test_full_output_is_said() -> None:
    done = shell("monkey --help > /dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and done.stderr.endswith("No space left on device\n")


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_scripts_name_our_variable(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(["completion", name]) == 0
    assert "_MONKEY_COMPLETE" in capsys.readouterr().out


def test_bash_completes_verbs_without_importing_them() -> None:
    script = 'eval "$(monkey completion bash)"; COMP_WORDS=(monkey pla) COMP_CWORD=1; _monkey_completion monkey; '
    assert shell(script + 'echo "${COMPREPLY[@]}"').stdout == "plan\n"


def test_the_group_lists_what_the_help_lists() -> None:
    import click

    assert monkey_command.list_commands(click.Context(monkey_command)) == ALL

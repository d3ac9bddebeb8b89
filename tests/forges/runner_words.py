"""Doubles of how runners of CI read the output of a step: which lines they take for commands.

- GitHub: `src/Runner.Common/ActionCommand.cs` and `src/Runner.Worker/Handlers/OutputManager.cs` of actions/runner at
  258d6c857; names of commands by docs.github.com, "Workflow commands for GitHub Actions". .NET's StreamReader ends
  lines at \\r, too, and reads UTF-16 behind its mark.
- act: `pkg/runner/command.go` of nektos/act. Gitea: `internal/pkg/report/reporter.go` of gitea.com/gitea/act_runner.
- GitLab: `lib/gitlab/regex.rb` of gitlab-org/gitlab (logs_section_…_regex); docs.gitlab.com, "Custom collapsible
  sections".

The real act runs in `tests/acceptance/test_runner_words.py`; GitHub's runner and GitLab run nowhere here.
"""

from __future__ import annotations

import codecs
import re

#: What GitHub's runner has registered, less those that only plugins may give.
GITHUB_COMMANDS = frozenset(
    (
        *("stop-commands", "set-env", "set-output", "save-state", "add-mask", "add-path", "add-matcher"),
        *("remove-matcher", "warning", "error", "notice", "debug", "group", "endgroup", "echo"),
    )
)
_BEFORE_GITHUB = re.compile(r"\r\n|\r|\n")
_ACT = re.compile(r"^(?:::([^ ]+)(?: .+)?::|##\[([^ ]+)(?: .+)?\])[^\r\n]*$")
_GITEA = re.compile(r"^::([^ :]+)( .*)?::(.*)$")
_GITLAB = re.compile(rb"section_(?:start|end):\d+:[a-zA-Z0-9_.-]+(?:\[\w+=\w+(?:, ?\w+=\w+)*\])?\r\x1b\[0K")


def find_runner_commands(output: bytes) -> list[str]:
    """Return what any of the runners takes for a command."""
    found = [line for line in _BEFORE_GITHUB.split(_decode_as_dotnet(output)) if _is_github_command(line)]
    lines = output.decode(errors="replace").split("\n")
    found += [line for line in lines if _ACT.match(line.rstrip("\r")) or _GITEA.match(line.rstrip("\r"))]
    return found + [marker.decode() for marker in _GITLAB.findall(output)]


def _decode_as_dotnet(output: bytes) -> str:
    for mark, name in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if output.startswith(mark):
            return output[2:].decode(name, errors="replace")
    return output.removeprefix(codecs.BOM_UTF8).decode(errors="replace")


def _is_github_command(line: str) -> bool:
    return _read_second_form(line.lstrip()) or _read_first_form(line)


def _read_second_form(line: str) -> bool:
    """`::name properties::data`, behind blanks."""
    end = line.find("::", 2)
    return line.startswith("::") and end >= 0 and _is_registered(line[2:end])


def _read_first_form(line: str) -> bool:
    """`##[name properties]data`, anywhere; only the first one of a line is looked at."""
    begin = line.find("##[")
    end = line.find("]", begin)
    return begin >= 0 and end >= 0 and _is_registered(line[begin + 3 : end])


def _is_registered(info: str) -> bool:
    return info.partition(" ")[0].lower() in GITHUB_COMMANDS

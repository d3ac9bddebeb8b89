"""`notify:` in monkey.yaml: what may be said, and what is wrong with it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.job.recipe import SweepSettings
from monkey.spec.project.forge_settings import ForgeSettings
from monkey.spec.project.notify_channel import NOTIFY_EVENTS, NotifyChannel
from monkey.spec.project.project import load_project


def notify(place: Path, text: str) -> tuple[NotifyChannel, ...]:
    (place / "monkey.yaml").write_text(f"project: p\nnotify: {text}\n")
    return load_project(place).notify


def test_what_may_be_said(tmp_path: Path) -> None:
    said = """
  - {webhook: "https://hooks.example.org/x", on: [stalled, failed], key: NOTIFY_KEY, after: 30m}
  - {slack: SLACK_WEBHOOK}
  - {webhook: HOOK, on: finished}
  - {forge: FORGE_TOKEN, on: failed}
"""
    expected = (
        NotifyChannel("webhook", "https://hooks.example.org/x", ("failed", "stalled"), "NOTIFY_KEY", 1800.0),
        NotifyChannel("slack", "SLACK_WEBHOOK", NOTIFY_EVENTS),
        NotifyChannel("webhook", "HOOK", ("finished",)),
        NotifyChannel("forge", "FORGE_TOKEN", ("failed",)),
    )
    assert notify(tmp_path, said) == expected
    assert notify(tmp_path, "{slack: SLACK_WEBHOOK}") == expected[1:2]
    located = replace(expected[3], forge=ForgeSettings("gitea", "https://git.lab/api/v1", "a/b"))
    assert located.words() == "forge FORGE_TOKEN for a/b at https://git.lab/api/v1 on failed"
    settings = SweepSettings(secrets=["OWN"], notify=[*expected[:3], located])
    assert SweepSettings.from_json(json.loads(json.dumps(settings.to_json()))) == settings
    assert settings.machine_secrets == ["OWN", "NOTIFY_KEY", "SLACK_WEBHOOK", "HOOK", "FORGE_TOKEN"]
    assert dict(settings.agent_secrets)["NOTIFY_KEY"] == ("notify", 0, "key")
    assert "notify" not in SweepSettings().to_json()
    assert expected[1].words() == "slack SLACK_WEBHOOK on finished, failed, stalled"


@pytest.mark.parametrize(
    ("text", "at", "message", "hint"),
    [
        ("all", "all", "expected a list of whom to tell, found the text 'all'", "slack: SLACK_WEBHOOK"),
        ("[all]", "all", "expected whom to tell, found the text 'all'", "slack: SLACK_WEBHOOK"),
        (
            "[{slack: A, webhook: B}]",
            "{slack",
            "expected a webhook, slack or forge, found several",
            "slack: SLACK_WEBHOOK",
        ),
        ("[{slack: A, when: B}]", "when", "unknown key 'when' of notify", "keys"),
        ("[{slack: 'https://hooks.slack.com/x'}]", "'https", "expected the name of a secret", "into ~/.config"),
        ("[{webhook: 'https://me:it@host/'}]", "'https", "with nothing secret in it", "webhook: NOTIFY_URL"),
        ("[{webhook: 'https://host/?token=it'}]", "'https", "with nothing secret in it", "webhook: NOTIFY_URL"),
        ("[{webhook: host/path}]", "host", "expected a URL, or the name of a secret", "https://host/path"),
        ("[{webhook: PATH}]", "PATH", "'PATH' is no secret", "another name"),
        ("[{webhook: A, key: secret word}]", "secret", "expected the name of a secret", "NOTIFY_KEY"),
        ("[{slack: A, key: B}]", "key", "slack takes no signature", "remove"),
        ("[{forge: A, key: B}]", "key", "forge takes no signature", "remove"),
        ("[{forge: 'ghp_it@'}]", "'ghp", "expected the name of a secret", "forge: FORGE_TOKEN"),
        ("[{forge: A, at: {type: gitea}}]", "at", "unknown key 'at' of notify", "keys"),
        ("[{forge: A}, {forge: B}]", "{forge: B", "forge B stands twice", "into one"),
        ("[{slack: A, on: []}]", "[]", "expected what to tell of, found an empty list", "finished, failed, stalled"),
        ("[{slack: A, on: [faild]}]", "faild", "unknown event 'faild'", "'failed'"),
        ("[{slack: A, on: never}]", "never", "unknown event 'never'", "events"),
        ("[{slack: A, after: 5s}]", "5s", "expected a minute or more, found the text '5s'", "10m"),
        ("[{slack: A, after: soon}]", "soon", "expected a duration", "30m"),
        ("[{slack: A}, {slack: A, on: failed}]", "{slack: A, on", "slack A stands twice", "into one"),
    ],
)
def test_mistakes(text: str, at: str, message: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        notify(tmp_path, text)
    (found,) = caught.value.problems
    assert (found.line, found.column) == (2, 9 + text.index(at))
    assert message in found.message and hint in (found.hint or "")
    assert "it@" not in str(caught.value.problems[0].message) and "token=it" not in found.message

"""One table says what a credential looks like: to the selection of code, and to all that is shown, posted or sent.

The oracle is gitleaks' list of rules (`config/gitleaks.toml` of gitleaks/gitleaks at b58d3f102). The tokens here are
made after its shapes, and are nobody's.
"""

from __future__ import annotations

import json
import secrets
import string

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from monkey.cli.terminal.text import Terminal, flatten_text, lay_out_table, make_printable
from monkey.forge.secret_text import mask_secrets
from monkey.plan.explain import explain_recipe_changes
from monkey.plan.text.credential_forms import MASK, find_credential, mask_credentials
from monkey.plan.text.describe import format_value
from monkey.plan.text.inert_markdown import format_inline_code
from monkey.results.differences.value_change import mask_value
from monkey.spec.job.recipe import Recipe
from monkey.web.safe_json import encode_shown_json


def letters(count: int, of: str = string.ascii_letters + string.digits) -> str:
    return "".join(secrets.choice(of) for _ in range(count))


HEX, UPPER, DIGITS = "0123456789abcdef", string.ascii_uppercase, string.digits

#: gitleaks' rule → the table's word for it, and a token of that shape.
GITLEAKS = {
    "aws-access-token": ("an AWS key id", f"AKIA{letters(16, UPPER)}"),
    "aws-access-token, of a role": ("an AWS key id", f"ASIA{letters(16, UPPER)}"),
    "anthropic-api-key": ("an Anthropic key", f"sk-ant-api03-{letters(93)}AA"),
    "anthropic-admin-api-key": ("an Anthropic key", f"sk-ant-admin01-{letters(93)}AA"),
    "azure-ad-client-secret": ("an Azure client secret", f"{letters(3)}8Q~{letters(34)}"),
    "databricks-api-token": ("a Databricks token", f"dapi{letters(32, HEX)}"),
    "gcp-api-key": ("a Google API key", f"AIza{letters(35)}"),
    "github-pat": ("a GitHub token", f"ghp_{letters(36)}"),
    "github-app-token": ("a GitHub token", f"ghs_{letters(36)}"),
    "github-oauth": ("a GitHub token", f"gho_{letters(36)}"),
    "github-refresh-token": ("a GitHub token", f"ghr_{letters(36)}"),
    "github-fine-grained-pat": ("a GitHub token", f"github_pat_{letters(22)}_{letters(59)}"),
    "gitlab-pat": ("a GitLab token", f"glpat-{letters(20)}"),
    "gitlab-pat-routable": ("a GitLab token", f"glpat-{letters(27)}.{letters(2)}.{letters(7)}"),
    "gitlab-ptt": ("a GitLab token", f"glptt-{letters(40, HEX)}"),
    "gitlab-deploy-token": ("a GitLab token", f"gldt-{letters(20)}"),
    "gitlab-runner-authentication-token": ("a GitLab token", f"glrt-{letters(20)}"),
    "gitlab-cicd-job-token": ("a GitLab token", f"glcbt-{letters(2)}_{letters(20)}"),
    "huggingface-access-token": ("a Hugging Face token", f"hf_{letters(34, string.ascii_letters)}"),
    "jwt": ("a web token", f"eyJ{letters(17)}.eyJ{letters(17)}.{letters(20)}"),
    "npm-access-token": ("an npm token", f"npm_{letters(36)}"),
    "openai-api-key": ("an OpenAI key", f"sk-proj-{letters(74)}T3BlbkFJ{letters(74)}"),
    "openai-api-key, of old": ("an OpenAI key", f"sk-{letters(20)}T3BlbkFJ{letters(20)}"),
    "pulumi-api-token": ("a Pulumi token", f"pul-{letters(40, HEX)}"),
    "pypi-upload-token": ("a PyPI token", f"pypi-AgEIcHlwaS5vcmc{letters(60)}"),
    "slack-bot-token": ("a Slack token", f"xoxb-{letters(12, DIGITS)}-{letters(12, DIGITS)}-{letters(24)}"),
    "slack-user-token": ("a Slack token", f"xoxp-{'-'.join(letters(12, DIGITS) for _ in range(3))}-{letters(32)}"),
    "slack-config-access-token": ("a Slack token", f"xoxe.xoxp-1-{letters(163)}"),
    "slack-app-token": ("a Slack token", f"xapp-1-A{letters(10, UPPER)}-{letters(13, DIGITS)}-{letters(64, HEX)}"),
    "slack-webhook-url": (
        "a Slack webhook",
        f"https://hooks.slack.com/services/T{letters(8)}/B{letters(8)}/{letters(24)}",
    ),
}
#: Forms that its issuers document, and that gitleaks has by other means.
OTHERS = {
    "Azure Storage": ("an Azure account key", f"AccountKey={letters(86)}=="),
    "Google OAuth": ("a Google token", f"ya29.{letters(60)}"),
    "Google client": ("a Google client secret", f"GOCSPX-{letters(28)}"),
}
TOKENS = [pytest.param(*pair, id=name) for name, pair in (GITLEAKS | OTHERS).items()]
#: What no reader may see of a token: its last characters.
END = 12


def made(**env: str) -> Recipe:
    return Recipe(code="c" * 64, command="train", datasets={}, environment={}, env=env, outputs=[])


@pytest.mark.parametrize(("kind", "token"), TOKENS)
def test_a_credential_is_known_and_seen_nowhere(kind: str, token: str) -> None:
    assert find_credential(f"x = '{token}'\n".encode()) == kind
    end = token.rstrip("=;")[-END:]
    [reason] = explain_recipe_changes(made(HUB=token), made(HUB="none"), {}, {})
    shown = {
        "mask": mask_credentials(f"a {token} b"),
        "plan": reason.text,
        "jobs": format_value(token),
        "error": make_printable(f"cannot read {token}"),
        "fact": flatten_text(f"command train --hub={token}"),
        "steered": flatten_text(f"{token[:9]}\x1b[0m{token[9:]}"),
        "table": "\n".join(lay_out_table(["HUB"], [[token], ["x"]], Terminal())),
        "narrow table": "\n".join(lay_out_table(["HUB", "B"], [[token, token]], Terminal(30))),
        "comment": format_inline_code(token),
        "posted": mask_secrets(f"it said {token}", {}),
        "diff": str(mask_value("HUB", token)),
        "page": encode_shown_json({"text": f"its log\n{token}\n"}).decode(),
    }
    assert {name: text for name, text in shown.items() if token[:END] in text or end in text} == {}
    assert shown["mask"].startswith("a ") and shown["mask"].endswith(" b") and MASK in shown["mask"]
    assert json.loads(shown["page"])["text"].startswith("its log\n")


def pem(form: serialization.PrivateFormat, password: str = "") -> str:
    """Return the text of a fresh key."""
    sealed = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    rivest = form is serialization.PrivateFormat.TraditionalOpenSSL
    key = rsa.generate_private_key(65537, 1024) if rivest else ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(serialization.Encoding.PEM, form, sealed).decode()


FORMS = serialization.PrivateFormat
PRIVATE_KEYS = [
    pem(FORMS.PKCS8),
    pem(FORMS.OpenSSH),
    pem(FORMS.TraditionalOpenSSL),
    pem(FORMS.TraditionalOpenSSL, "password"),
    f'{{"type": "service_account", "private_key": "{pem(FORMS.PKCS8)}"}}'.replace("\n", "\\n"),
    f"KEY = '''\\\n{pem(FORMS.PKCS8)}'''\n".replace("\n", "\r\n"),
]


@pytest.mark.parametrize("number", range(len(PRIVATE_KEYS)))
def test_a_private_key_is_known_and_none_of_its_body_is_seen(number: int) -> None:
    text = PRIVATE_KEYS[number]
    assert find_credential(f"x = 1\n{text}\n".encode()) == "a private key"
    body = [line for line in text.replace("\\n", "\n").splitlines() if len(line) > 40 and "-----" not in line]
    assert body and not any(line in mask_credentials(text) for line in body)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("a refresh token", f'{{"type": "authorized_user", "refresh_token": "1//0{letters(60)}"}}'),
        ("a Google credential", '{"type": "external_account", "audience": "a", "credential_source": {"file": "x"}}'),
        ("a private key", f'{{"private_key": "{pem(FORMS.PKCS8)}"}}'.replace("\n", "\\n")),
    ],
)
def test_json_stays_json(kind: str, text: str) -> None:
    assert find_credential(text.encode()) == kind
    assert json.loads(mask_credentials(text)).keys() == json.loads(text).keys()
    nested = json.dumps({"text": text})
    assert json.loads(json.loads(mask_credentials(nested))["text"]).keys() == json.loads(text).keys()


@pytest.mark.parametrize(
    "text",
    [
        'if line == "-----BEGIN RSA PRIVATE KEY-----":\n    parse(line)\n',
        "-----BEGIN CERTIFICATE-----\nMIIB" + "A" * 60,
        "-----BEGIN PUBLIC KEY-----\nMIIB" + "A" * 60,
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\n",
        "aws_access_key_id = AKIAIOSFODNN7EXAMPLE\n",
        'ghp_ = "ghp_..."; glpat = "glpat-xxx"; token = "hf_token"',
        'ghp_token_of_the_user_who_applies = "xoxb-your-token-goes-here-please"',
        '{"type": "authorized_user", "refresh_token": "fake"}',
        "FAKIA" + "A" * 40,
        "\ud800 ä half a pair",
    ],
)
def test_text_that_speaks_of_credentials_is_code(text: str) -> None:
    assert find_credential(text.encode(errors="replace")) is None
    assert mask_credentials(text) == text

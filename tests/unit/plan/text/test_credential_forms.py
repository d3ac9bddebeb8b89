"""One table says what a credential looks like: to the selection of code, and to all that is shown, posted or sent."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from monkey.cli.terminal.text import Terminal, flatten_text, lay_out_table, make_printable
from monkey.forge.secret_text import mask_secrets
from monkey.plan.explain import explain_recipe_changes
from monkey.plan.text.credential_forms import MASK, find_credential, mask_credentials
from monkey.plan.text.describe import format_value
from monkey.plan.text.inert_markdown import format_inline_code, replace_hidden
from monkey.results.differences.value_change import mask_value
from monkey.spec.job.recipe import Recipe
from monkey.web.safe_json import encode_shown_json
from tests.credential_samples import END, GITLEAKS, HEX, OTHERS, letters

TOKENS = [pytest.param(*pair, id=name) for name, pair in (GITLEAKS | OTHERS).items()]


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


@pytest.mark.parametrize(("kind", "token"), TOKENS)
@pytest.mark.parametrize(("before", "after"), [("MY_", ""), ("", "_tail"), ("x-", "."), ("key=", "&")])
def test_a_credential_within_a_longer_word_is_known(kind: str, token: str, before: str, after: str) -> None:
    text = f"{before}{token}{after}"
    assert find_credential(text.encode()) == kind
    shown = mask_credentials(text)
    assert MASK in shown and token.rstrip("=")[-END:] not in shown


KEY = letters(40, HEX)


@pytest.mark.parametrize(
    "text",
    [
        "export MY_WANDB_API_KEY={}",
        "wandb_key: '{}'",
        '{{"env": {{"WANDB_API_KEY": "{}"}}}}',
        '{{"text": "{{\\"WANDB_API_KEY\\": \\"{}\\"}}"}}',
        "wandb login --relogin {}",
        'wandb.login(key="{}")',
        "machine api.wandb.ai\n  login user\n  password {}\n",
    ],
)
def test_an_old_key_of_wandb_is_known_by_what_stands_before_it(text: str) -> None:
    assert find_credential(text.format(KEY).encode()) == "a W&B key"
    assert mask_credentials(text.format(KEY)) == text.format(MASK)


def test_a_value_is_known_by_its_name() -> None:
    [reason] = explain_recipe_changes(made(WANDB_API_KEY=KEY, A="b"), made(WANDB_API_KEY="none", A=KEY), {}, {})
    assert reason.text == f"env changed: A (b → {KEY}), WANDB_API_KEY ({MASK} → none)"
    assert str(mask_value("env WANDB_API_KEY", KEY)) == "(not shown: it holds a W&B key)"
    assert mask_value("env A", KEY) == KEY


@pytest.mark.parametrize(
    "text",
    [
        "commit {0}",
        "wandb @ git+https://github.com/wandb/wandb@{0}",
        "wandb: Git commit {0}",
        "WANDB_API_KEY={0}{0}",
        "task_live_{0}",
        "SG.module_of_somebody.another_one",
        "sk-or-v1-your-key-here rpa_your_key_of_runpod hf_token_of_the_user",
        "chf_{0} Ahf_{0}",
    ],
)
def test_what_only_looks_like_a_credential_stays(text: str) -> None:
    text = text.format(KEY)
    assert find_credential(text.encode()) is None
    assert mask_credentials(text) == text


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "Basic", "token"])
@pytest.mark.parametrize("secret", ["YW5uOnB3", "abc.def", "0123456789abcdef0123", "sha256~bRLFnzd59Z3X"])
def test_what_a_header_gives_is_shown_nowhere_and_its_file_is_code(scheme: str, secret: str) -> None:
    for text in (f"curl -H 'Authorization: {scheme} {secret}' x", f"proxy-authorization:{scheme} {secret}"):
        assert find_credential(text.encode()) is None
        assert mask_credentials(text) == text.replace(secret, MASK)
    whole = {"headers": {"AUTHORIZATION": f"{scheme} {secret}", "b": secret}}
    masked = {"headers": {"AUTHORIZATION": f"{scheme} {MASK}", "b": secret}}
    assert json.loads(mask_credentials(json.dumps(whole))) == masked
    nested = mask_credentials(json.dumps({"text": json.dumps(whole)}))
    assert json.loads(json.loads(nested)["text"]) == masked
    assert mask_credentials(str(whole)) == str(masked)


def test_a_bearer_is_known_without_its_header() -> None:
    assert mask_credentials('{"auth": "Bearer 0123456789abcdefXY"}') == '{"auth": "Bearer ***"}'


@pytest.mark.parametrize(
    "text",
    [
        "curl -H 'Authorization: Bearer $HF_TOKEN' -H \"Authorization: Basic {login}\"",
        "Authorization: Bearer <your token>, or Authorization: Basic ...",
        "authorization: required; the bearer internationalization failed for bearer 12",
        "Basic research and token counts: Authorization of tokens",
    ],
)
def test_a_header_without_a_credential_stays(text: str) -> None:
    assert mask_credentials(text) == text


@pytest.mark.parametrize("password", ["it's", 'say"so', "a/b", "a/b/c'd", "x#y?z", "12'3/4"])
def test_a_password_that_no_url_should_have_is_shown_nowhere(password: str) -> None:
    text = f"cannot reach postgresql://ann:{password}@db.lab:5432/runs now"
    for shown in (mask_credentials(text), mask_secrets(text, {}), make_printable(text)):
        assert shown == f"cannot reach postgresql://{MASK}@db.lab:5432/runs now"
    whole = {"url": text, "mail": "joe@example.com"}
    for said in (json.dumps(whole), json.dumps(whole).replace("/", "\\/"), json.dumps({"a": json.dumps(whole)})):
        masked = json.loads(mask_credentials(said))
        assert (json.loads(masked["a"]) if "a" in masked else masked) == whole | {"url": mask_credentials(text)}


@pytest.mark.parametrize("password", ["x", "correct-horse:battery", "%40%2F", "$3cret!", "p@ss"])
def test_a_password_in_a_url_is_shown_nowhere_and_its_file_is_code(password: str) -> None:
    text = f"'postgresql://ann:{password}@db.lab:5432/runs' and https://{password}@pypi.lab/simple"
    assert find_credential(text.encode()) is None
    for shown in (mask_credentials(text), mask_secrets(text, {}), make_printable(text), format_value(text)):
        assert f"postgresql://{MASK}@db.lab:5432/" in shown and "ann" not in shown
        assert password == "x" or password not in shown
    escaped = json.dumps({"url": text}).replace("/", "\\/")
    for whole in (escaped, json.dumps({"url": text})):
        assert json.loads(mask_credentials(whole))["url"] == mask_credentials(text)


@pytest.mark.parametrize(
    "text",
    [
        "ssh://ann@host:22/a@b",
        "https://db.lab:8086/write?to=ann@lab",
        "https://ann:$TOKEN@lab and https://ann:{token}@lab and https://${TOKEN}@lab",
        "http://lab.com?mail=joe@example.com and https://lab.com#joe@x and http://lab:8080?u=a@b",
        "docker://ubuntu:22.04@sha256:0123456789abcdef",
        "s3://bucket/a:b/c@d",
        "time 10://20 a:b @",
        "http://lab:8080/a@b http://lab:8080?u=a@b http://lab:8080#a@b http://lab:/a@b",
        "file://C:/x@y ssh://git@host:o/r@v1 git+https://github.com/o/r@v1.0 oci://ghcr.io/x:tag@sha256:00",
        '{"url":"http://lab:x","mail":"joe@example.com"}',
        "{'url':'http://lab:x','mail':'joe@example.com'}",
        "http://lab:$PORT/a@b http://lab:{port}/a@b http://lab:<port>/a@b",
    ],
)
def test_a_url_without_a_password_stays(text: str) -> None:
    assert mask_credentials(text) == text


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


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY-----\n" + "A:  " * 2000,
        "-eyJ" * 4000,
        "-sk-" * 4000 + "T3BlbkFJ",
        "x://a:b" * 40_000 + " @",
        "x://a:" + "\\" * 100_000 + "@",
        "authorization:" + " " * 100_000 + "authorization: bearer" * 10_000,
        "wandb key" * 40_000,
    ],
    ids=["headers", "web tokens", "OpenAI keys", "URLs", "backslashes", "authorizations", "keys of W&B"],
)
def test_a_text_made_to_be_searched_for_ever_is_searched_to_its_end(text: str) -> None:
    """The first took twice as long for each header: it would never end."""
    assert mask_credentials(text) == text


def test_a_private_key_with_the_line_ends_of_windows_is_not_posted() -> None:
    key = "\r\n".join(["-----BEGIN PRIVATE KEY-----", *["M" + "q" * 63] * 3, "-----END PRIVATE KEY-----"])
    assert "qqqq" not in replace_hidden(key)

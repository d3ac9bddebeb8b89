"""What credentials look like: the forms by which issuers mark them. What is shown, posted or sent is held against this.

Public lists that know more: gitleaks' `config/gitleaks.toml`, GitHub's "Supported secret scanning patterns".
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: No letter and no digit stands before a credential, unless it ends an escape of JSON.
_BEFORE = rb"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=\\u[0-9a-f]{4}))"


class _Form(NamedTuple):
    """How an issuer marks its credentials: bytes that all have, and the whole form."""

    kind: str
    needle: bytes
    #: A regular expression: it is compiled where the needle is found, and few texts have any. A group is all that is
    #: hidden.
    form: bytes


#: Each form is long or has a body: programs that look for private keys name the first line alone.
_FORMS = (
    _Form(
        "a private key",
        b"PRIVATE KEY",
        rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\+[nr])+"
        # A header ends with its line: after any blank, a line of many headers could be read in 2^n ways.
        rb"(?:[A-Za-z-]+: [^\n\\]*(?:\n|\\+[nr])(?:\s|\\+[nr])*)*[A-Za-z0-9+/=]{40}(?:[A-Za-z0-9+/=]|\s|\\+[nr])*",
    ),
    *(
        _Form("an AWS key id", begin, rb"%b[A-Z2-7]{16}(?<!EXAMPLE)(?![A-Za-z0-9])" % begin)
        for begin in (b"AKIA", b"ASIA", b"ABIA", b"ACCA")
    ),
    _Form("a refresh token", b"refresh_token", rb'"refresh_token"\s*:\s*"[\w/.+=-]{40,}"'),
    _Form(
        "a Google credential",
        b"external_account",
        rb'"type"\s*:\s*"external_account"(?=[^}]{0,4000}"credential_source")',
    ),
    _Form("a Google API key", b"AIza", rb"AIza[\w-]{35,}"),
    _Form("a Google token", b"ya29.", rb"ya29\.[\w-]{20,}"),
    _Form("a Google client secret", b"GOCSPX-", rb"GOCSPX-[\w-]{28}"),
    *(
        _Form("a GitHub token", b"gh%c_" % of, rb"gh%c_(?:\d+_)?[A-Za-z0-9]{20,}\w*(?:\.[\w-]+)*" % of)
        for of in b"pousr"
    ),
    _Form("a GitHub token", b"github_pat_", rb"github_pat_[A-Za-z0-9]{16,}\w*"),
    *(
        _Form("a GitLab token", b"gl%b-" % of, rb"gl%b-[\w-]{16,}(?:\.[\w-]+)*" % of)
        for of in (b"pat", b"cbt", b"dt", b"ptt", b"rt", b"oas", b"soat", b"agent")
    ),
    _Form("a Hugging Face token", b"hf_", rb"hf_[A-Za-z0-9]{30,}"),
    _Form("a W&B key", b"wandb_v1_", rb"wandb_v1_\w{60,}"),
    *(
        # Its old keys look like commits. `wandb@` and a commit are a version that pip installs.
        _Form("a W&B key", name, rb"(?i:wandb)[^@]{0,60}?(?i:key|login|password)[^\w@]{1,12}([0-9a-f]{40})(?!\w)")
        for name in (b"wandb", b"WANDB")
    ),
    _Form("a Replicate token", b"r8_", rb"r8_[A-Za-z0-9]{37}(?![A-Za-z0-9])"),
    _Form("a Groq key", b"gsk_", rb"gsk_[A-Za-z0-9]{50,54}(?![A-Za-z0-9])"),
    _Form("a Slack token", b"xox", rb"xox[a-z](?:\.xox[a-z])?-\d[\w-]{15,}"),
    _Form("a Slack token", b"xapp-", rb"xapp-\d-[\w-]{20,}"),
    _Form("a Slack webhook", b"hooks.slack", rb"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{30,}"),
    _Form("an npm token", b"npm_", rb"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _Form("a PyPI token", b"pypi-AgE", rb"pypi-AgE[\w-]{50,}"),
    _Form("an OpenAI key", b"T3BlbkFJ", rb"sk-[\w-]{20,200}?T3BlbkFJ[\w-]{20,}"),
    _Form("an Anthropic key", b"sk-ant-", rb"sk-ant-[a-z0-9]+-[\w-]{80,}"),
    _Form("an OpenRouter key", b"sk-or-", rb"sk-or-(?:v\d+-)?[0-9a-f]{64}"),
    _Form("a RunPod key", b"rpa_", rb"rpa_[A-Za-z0-9]{40,}"),
    _Form("a SendGrid key", b"SG.", rb"SG\.[\w-]{22}\.[\w-]{43,}"),
    _Form("a Stripe key", b"k_live_", rb"[rs]k_live_[A-Za-z0-9]{20,}"),
    _Form("a Databricks token", b"dapi", rb"dapi[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"),
    _Form("a Pulumi token", b"pul-", rb"pul-[0-9a-f]{40}(?![A-Za-z0-9])"),
    _Form("an Azure account key", b"AccountKey=", rb"AccountKey=[A-Za-z0-9+/]{86}=="),
    _Form("an Azure client secret", b"Q~", rb"[\w~.]{3}\dQ~[\w~.-]{31,34}"),
    _Form("a web token", b"eyJ", rb"eyJ[\w-]{10,2000}\.[\w-]{10,4000}\.[\w-]*"),
)
#: What is hidden of a form: not the words around, the quotes of JSON and its `\n`.
_HIDDEN = re.compile(rb"(?<!\\)[\w/.+=~-]{16,}")
MASK = "***"
#: A character of a password, and what stands for one: `$TOKEN`, `{token}`, `<token>`.
_WORD = r"""[^\s/?#'"\\]"""
_VARIABLE = r"(?!(?:\$\{?\w+\}?|\{\w+\}|<\w+>)@)"
#: What stands before it, also within JSON that escapes slashes.
_SLASHES = (r"://", r":\\/\\/")
_AFTER_ANY = "|".join(f"(?<={slashes})" for slashes in _SLASHES)
_AFTER_HTTP = "|".join(f"(?<={scheme}{slashes})" for scheme in ("http", "https") for slashes in _SLASHES)
#: A character of a password that no URL should have. A quote that ends a text stands before none of its letters.
_ODD = r"""(?:[^\s@'"\\]|\\/|\\*['"](?![\s,:;)\]}>'"\\]))"""
#: A port, or a variable: a path follows, and no password.
_PORT = r"(?!\d*(?:[/?#]|\\/)|[$<{])"
#: User and password of a URL; for http the user alone, too, which may be a token. They are hidden wherever they are
#: shown, but a file with one is code: examples have some. A digest behind an image's tag is no host.
_IN_URL = (
    rf"(?:{_AFTER_ANY})[^\s/:@?#'\"\\]*:{_VARIABLE}{_WORD}+(?=@(?!sha256:))"
    rf"|(?:{_AFTER_HTTP}){_VARIABLE}[^\s/:?#'\"\\]+(?=@)"
    rf"|(?:{_AFTER_ANY})[^\s/:@?#'\"\\]*:{_PORT}{_ODD}{{1,200}}(?=@(?!sha256:))"
)
#: What a header gives. That is hidden as in URLs, too.
_IN_HEADER = (
    r"(?i)(authorization\\*[\"']?\s*[:=]\s*\\*[\"']?(?:basic|bearer|token)\s+"
    r"|\bbearer\s+(?=\D{0,15}\d)(?=[\w~+/.=-]{16}))[\w~+/.=-]{6,}"
)
#: One is in each text that has such a header.
_HEADERS = ("uthorization", "UTHORIZATION", "earer", "EARER")
#: Characters of the shortest form, an AWS key id. Most cells of tables have fewer.
_SHORTEST = 20


def find_credential(data: bytes) -> str | None:
    """Return what credential the bytes hold, such as "a private key"; None if none is known."""
    return next((kind for kind, needle, form in _FORMS if needle in data and re.search(_BEFORE + form, data)), None)


def mask_credentials(text: str) -> str:
    """Return the text with stars in place of each credential of a known form. JSON stays JSON."""
    if "@" in text:
        text = re.sub(_IN_URL, MASK, text)
    if len(text) < _SHORTEST:
        return text
    if any(word in text for word in _HEADERS):
        text = re.sub(_IN_HEADER, rf"\1{MASK}", text)
    # A search in a text takes a ninth of one in bytes.
    forms = [form for _, needle, form in _FORMS if needle.decode() in text]
    if not forms:
        return text
    data = text.encode(errors="surrogatepass")
    for form in forms:
        data = re.sub(_BEFORE + form, _hide, data)
    return data.decode(errors="surrogatepass")


def mask_named_value(name: str, value: object) -> str:
    """Return the value as text, with stars in place of what is a credential under that name."""
    return mask_credentials(f"{name}={value}").removeprefix(f"{name}=")


def _hide(found: re.Match[bytes]) -> bytes:
    if not found.re.groups:
        return _HIDDEN.sub(MASK.encode(), found[0])
    return found[0][: found.start(1) - found.start()] + MASK.encode() + found[0][found.end(1) - found.start() :]

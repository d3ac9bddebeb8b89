"""Files that hold credentials: known by the names that programs choose, or by bytes that issuers mark."""

from __future__ import annotations

import re
from fnmatch import translate
from itertools import product
from typing import NamedTuple

#: Directories in which programs keep credentials.
_DIRECTORIES = frozenset((".aws", ".azure", ".gcloud", ".gnupg", ".kube", ".oci", ".password-store", ".ssh"))

#: Files of programs, by the ends of their paths. Names are compared in lower case.
_FILES = (
    *("*/.docker/config.json", "*/.huggingface/token", "*/huggingface/token", "*/wandb/settings", "*/gh/hosts.yml"),
    *("*/gcloud/*.db", "*/.cargo/credentials", "*/.streamlit/secrets.toml", "*/.m2/settings.xml"),
    *("*/.env", "*/.env.*", "*/.envrc", "*/.netrc", "*/_netrc", "*/.pypirc", "*/.npmrc", "*/.yarnrc.yml"),
    *("*/.git-credentials", "*/.boto", "*/.s3cfg", "*/.databrickscfg", "*/.pgpass", "*/.my.cnf", "*/.htpasswd"),
    *("*/.dockercfg", "*/.terraformrc", "*/.vault-token", "*/.modal.toml", "*/.passwd-s3fs", "*/kaggle.json"),
    *("*/gha-creds-*.json", "*/application_default_credentials.json", "*/*.tfvars", "*/*.tfvars.json"),
    # What a login in CI leaves in the checkout: by Google's guide for GitLab, by AWS's, by Terraform's and others'.
    *("*/.config/gcloud/*", "*/.config/gh/*", "*/.ci_job_jwt_file", "*/.gcp_temp_cred.json", "*/web_identity_token"),
    *("*/credentials.tfrc.json", "*/kubeconfig", "*/*.kubeconfig", "*/containers/auth.json", "*/signing_key"),
    *("*/*.tfstate", "*/*.tfstate.backup", "*/*.pem", "*/*.key", "*/*.p12", "*/*.pfx", "*/*.jks", "*/*.keystore"),
    *("*/*.kdbx", "*/*.ppk", "*/id_rsa", "*/id_dsa", "*/id_ecdsa", "*/id_ed25519", "*/id_*_sk", "*/*.token"),
)
#: What people call such files, and how these end: a `secrets.py` is a program.
_STEMS = ("credential", "credentials", "secret", "secrets", "password", "passwords", "token", "api_key", "apikey")
_BEGINNINGS = ("service-account", "service_account", "serviceaccount", "client_secret")
_ENDINGS = ("", ".json", ".yaml", ".yml", ".toml", ".ini", ".txt", ".csv")
_NAMES = (
    *(f"*/{dot}{stem}{end}" for dot, stem, end in product(("", ".", "*_", "*-"), _STEMS, _ENDINGS)),
    *(f"*/{begin}*.json" for begin in _BEGINNINGS),
)
_PATH = re.compile("|".join(map(translate, (*_FILES, *_NAMES))))


class _Mark(NamedTuple):
    """How an issuer marks its credentials: bytes that all have, and the whole form."""

    what: str
    needle: bytes
    form: re.Pattern[bytes]


#: Each form is long or has a body: programs that look for private keys name the first line alone.
_MARKS = tuple(
    _Mark(what, needle, re.compile(form))
    for what, needle, form in (
        (
            "a private key",
            b"PRIVATE KEY",
            rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\[nr])+"
            rb"(?:[A-Za-z-]+: [^\n\\]*(?:\s|\\[nr])+)*[A-Za-z0-9+/=]{40}",
        ),
        ("an AWS key id", b"AKIA", rb"(?<![A-Za-z0-9+/])AKIA[A-Z2-7]{16}(?<!EXAMPLE)(?![A-Za-z0-9+/=])"),
        ("an AWS key id", b"ASIA", rb"(?<![A-Za-z0-9+/])ASIA[A-Z2-7]{16}(?<!EXAMPLE)(?![A-Za-z0-9+/=])"),
        ("a refresh token", b"refresh_token", rb'"refresh_token"\s*:\s*"[\w/.+=-]{40,}"'),
        ("a Google credential", b"external_account", rb'"type"\s*:\s*"external_account"[^}]*"credential_source"'),
        ("a Google API key", b"AIza", rb"(?<![\w-])AIza[\w-]{35}(?![\w-])"),
        *(("a GitHub token", b"gh%c_" % of, rb"(?<!\w)gh[pousr]_[A-Za-z0-9]{36}(?!\w)") for of in b"pousr"),
        ("a GitHub token", b"github_pat_", rb"(?<!\w)github_pat_\w{82}(?!\w)"),
        ("a GitLab token", b"glpat-", rb"(?<![\w-])glpat-[\w-]{20}"),
        ("a Hugging Face token", b"hf_", rb"(?<!\w)hf_[A-Za-z]{34}(?!\w)"),
        ("a Slack token", b"xox", rb"(?<!\w)xox[abeoprs]-[0-9]{10,}-[\w-]{20,}"),
        ("an npm token", b"npm_", rb"(?<!\w)npm_[A-Za-z0-9]{36}(?!\w)"),
        ("a PyPI token", b"pypi-AgE", rb"pypi-AgE[\w-]{50,}"),
        ("an OpenAI key", b"T3BlbkFJ", rb"(?<![\w-])sk-[\w-]{20,}T3BlbkFJ[\w-]{20,}"),
        ("an Anthropic key", b"sk-ant-", rb"(?<![\w-])sk-ant-[a-z0-9]+-[\w-]{80,}"),
        ("a Databricks token", b"dapi", rb"(?<!\w)dapi[0-9a-f]{32}(?!\w)"),
        ("an Azure account key", b"AccountKey=", rb"AccountKey=[A-Za-z0-9+/]{86}=="),
    )
)


def is_credential_name(path: str) -> bool:
    """Tell whether a '/'-separated path is one under which programs or people keep credentials."""
    lower = path.lower()
    return not _DIRECTORIES.isdisjoint(lower.split("/")) or _PATH.match(f"/{lower}") is not None


def find_credential(data: bytes) -> str | None:
    """Return what credential the bytes of a file hold, such as "a private key"; None if none is known."""
    return next((mark.what for mark in _MARKS if mark.needle in data and mark.form.search(data)), None)

"""Names of files that hold credentials, as programs and people choose them."""

from __future__ import annotations

import re
from itertools import product

#: Directories in which programs keep credentials.
_DIRECTORIES = {".aws", ".azure", ".gcloud", ".gnupg", ".kube", ".oci", ".password-store", ".ssh"}

#: The ends of paths of programs' files, where `_STEMS` do not have them. Names are compared in lower case.
_FILES = (
    "/.docker/config.json",
    "/wandb/settings",
    "/gh/hosts.yml",
    "/.m2/settings.xml",
    ".tfvars",
    ".tfvars.json",
    "/.env",
    "/.envrc",
    "/.netrc",
    "/_netrc",
    "/.pypirc",
    "/.npmrc",
    "/.yarnrc.yml",
    "/.boto",
    "/.s3cfg",
    "/.databrickscfg",
    "/.pgpass",
    "/.my.cnf",
    "/.htpasswd",
    "/.dockercfg",
    "/.terraformrc",
    "/.modal.toml",
    "/.passwd-s3fs",
    "/kaggle.json",
    # Remotes and their passwords, of storage, of clouds, of services of data and experiments.
    "rclone.conf",
    "/.mc/config.json",
    "/.ossutilconfig",
    "/clouds.yaml",
    "openrc.sh",
    "/.smbcredentials",
    "/.mylogin.cnf",
    "/.influxdbv2/configs",
    "/glab-cli/config.yml",
    "/doctl/config.yaml",
    "/.cdsapirc",
    "/.ecmwfapirc",
    "/clearml.conf",
    "/.comet.config",
    # What a login in CI leaves in the checkout: by Google's guide for GitLab, by AWS's, by Terraform's and others'.
    "/.ci_job_jwt_file",
    "/.gcp_temp_cred.json",
    "/credentials.tfrc.json",
    "/kubeconfig",
    ".kubeconfig",
    "/containers/auth.json",
    "/signing_key",
    ".tfstate",
    ".tfstate.backup",
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".ppk",
    "/id_rsa",
    "/id_dsa",
    "/id_ecdsa",
    "/id_ed25519",
    ".token",
)
#: The same, where any text stands before the end, or is the end.
_WIDE = (
    r"(?s)/(?:\.env\.|\.config/gcloud/|\.config/gh/|gcloud/.*\.db\Z|id_.*_sk\Z"
    r"|(?:gha-creds-|service[-_]?account|client_secret).*\.json\Z)"
)
#: What people call such files, and how these end: a `secrets.py` is a program.
_STEMS = ("credential", "credentials", "secret", "secrets", "password", "passwords", "token", "api_key", "apikey")
_ENDINGS = ("", ".json", ".yaml", ".yml", ".toml", ".ini", ".txt", ".csv")
# A regular expression of them all would take as long to compile as a hundred modules to import.
_NAMES = (*_FILES, *map("".join, product(("/", "/.", "_", "-"), _STEMS, _ENDINGS)))


def is_credential_name(path: str) -> bool:
    """Tell whether a '/'-separated path is one under which programs or people keep credentials."""
    lower = f"/{path.lower()}"
    named = lower.endswith(_NAMES) or not _DIRECTORIES.isdisjoint(lower.split("/"))
    return named or re.search(_WIDE, lower) is not None

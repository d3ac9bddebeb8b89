"""Names of files that hold credentials, as programs and people choose them."""

from __future__ import annotations

import re
from fnmatch import translate
from itertools import product

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
    # Remotes and their passwords, of storage, of clouds, of services of data and experiments.
    *("*/*rclone.conf", "*/.mc/config.json", "*/.ossutilconfig", "*/clouds.yaml", "*/*openrc.sh", "*/.smbcredentials"),
    *("*/.mylogin.cnf", "*/.influxdbv2/configs", "*/glab-cli/config.yml", "*/doctl/config.yaml", "*/.cdsapirc"),
    *("*/.ecmwfapirc", "*/clearml.conf", "*/.comet.config"),
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


def is_credential_name(path: str) -> bool:
    """Tell whether a '/'-separated path is one under which programs or people keep credentials."""
    lower = path.lower()
    return not _DIRECTORIES.isdisjoint(lower.split("/")) or _PATH.match(f"/{lower}") is not None

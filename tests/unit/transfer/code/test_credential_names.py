"""Files that hold credentials are no code, by their names or their bytes; programs that speak of such files are."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from monkey.errors import PlanError
from monkey.transfer.code.code_snapshot import read_code
from monkey.transfer.code.credential_names import is_credential_name
from tests.unit.transfer.conftest import Git

#: The files of a review that looked what goes to a store as code, and what CI's login actions leave.
NAMES = (
    *(".git-credentials", ".npmrc", ".docker/config.json", ".kube/config", "credentials.json", "service-account.json"),
    *("kaggle.json", ".boto", ".databrickscfg", "prod.tfvars", "conf/secrets.yaml", "token.txt", ".huggingface/token"),
    *("my.key", "wandb/settings", ".env", ".env.local", ".netrc", "id_rsa", "server.pem", ".aws/credentials"),
    *("gha-creds-0123456789abcdef.json", "sub/GHA-Creds-1.json", ".config/gcloud/access_tokens.db", "hf_token"),
    *(".config/gcloud/configurations/config_default", ".config/gh/config.yml", ".ci_job_jwt_file", "signing_key"),
    *(".gcp_temp_cred.json", "ci/web_identity_token", ".terraform.d/credentials.tfrc.json", "kubeconfig"),
    *("prod.kubeconfig", "containers/auth.json"),
    *("Credentials.JSON", "rclone.conf", ".config/rclone/rclone.conf", ".rclone.conf", "clouds.yaml", "lab-openrc.sh"),
    *(
        ".mc/config.json",
        ".cdsapirc",
        "clearml.conf",
        ".influxdbv2/configs",
        ".smbcredentials",
        "my_service-account.key",
        ".ssh/config",
        "api_key.txt",
        ".cargo/credentials.toml",
    ),
)
INNOCENT = (
    *("train.py", "secrets.py", "token.py", "credentials/__init__.py", "lib/tokens/bpe.py", "tokenizer.json"),
    *("special_tokens_map.json", "config.json", "docker/config.json", "environment.py", "keys.py", "monkey.json"),
    *("signing_key.py", "gcloud/train.py", "auth.json", "kubeconfig.py"),
    *("token/model.py", "secretary.txt", "passwords_test.py", "settings", "hosts.yml", "added_tokens.json"),
    # Less than what a form has at both ends.
    *("id_sk", "id_model_sky", "gcloud/train.db.py", "gcloud.db", ".environment", "gha-creds.json", "client.json"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_credentials(name: str) -> None:
    assert is_credential_name(name)


@pytest.mark.parametrize("name", INNOCENT)
def test_a_name_of_code(name: str) -> None:
    assert not is_credential_name(name)


#: The text of a fresh key.
KEY = (
    ec.generate_private_key(ec.SECP256R1())
    .private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    .decode()
)


def test_nothing_of_an_untracked_key_becomes_code_and_the_reason_is_known(repository: Path) -> None:
    (repository / "notes.txt").write_text(KEY)
    (repository / ".npmrc").write_text("")
    (repository / "new.py").write_text("new")
    code = read_code(repository)
    assert code.credentials == {".npmrc": "by its name", "notes.txt": "holds a private key"}
    assert code.untracked == ("new.py",) and not {"notes.txt", ".npmrc"} & set(code.files)
    assert not code.vouched


def test_a_key_that_git_tracks_is_code_and_known(repository: Path, git: Git) -> None:
    (repository / "lib" / "test_key.py").write_text(f"KEY = '''{KEY}'''")
    git(repository, "add", "lib/test_key.py")
    code = read_code(repository)
    assert "lib/test_key.py" in code.files and not code.credentials and not code.untracked
    assert code.vouched == {"lib/test_key.py": "holds a private key"}


@pytest.mark.parametrize("include", [["**"], ["lib", "*"], ["lib/*.py", "key*.py"]])
def test_a_wide_pattern_includes_no_credentials_and_a_whole_name_does(repository: Path, include: list[str]) -> None:
    for name, text in {"keys.py": KEY, ".netrc": "machine x", "key.py": "no key"}.items():
        (repository / name).write_text(text)
    code = read_code(repository, include)
    assert "key.py" in code.files and not {"keys.py", ".netrc"} & set(code.files)
    assert code.credentials["keys.py"] == "holds a private key"
    named = read_code(repository, [*include, "keys.py", ".netrc"])
    assert {"keys.py", ".netrc"} <= set(named.files) and not named.credentials
    assert named.vouched == {"keys.py": "holds a private key"}


def test_a_pattern_for_nothing_but_credentials_says_so(repository: Path) -> None:
    (repository / "server.pem").write_text("")
    with pytest.raises(PlanError, match=r"'\*\.pem' matches files .* that may hold credentials"):
        read_code(repository, ["train.py", "*.pem"])


def test_without_git_credentials_are_no_code_either(tmp_path: Path) -> None:
    for name, text in {"train.py": "", "token.txt": "", "a.ini": f"[x]\nid=AKIA{'B' * 16}\n"}.items():
        (tmp_path / name).write_text(text)
    code = read_code(tmp_path)
    assert set(code.files) == {"train.py"} and set(code.credentials) == {"token.txt", "a.ini"}
    assert not code.untracked, "there, no file is tracked"

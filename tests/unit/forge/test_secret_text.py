"""No secret gets into what others read."""

from __future__ import annotations

import pytest

from monkey.forge.secret_text import mask_secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("403 for ghs_0123456789abcdefghijKL", "403 for ***"),
        ("github_pat_11ABCDEFG0123456789_abc is bad", "*** is bad"),
        ("glpat-abcdefghij0123456789!", "***!"),
        ("key AKIAIOSFODNN7QWERTYU.", "key ***."),
        ("s3://u:hunter2@host/x", "s3://***@host/x"),
        ("fatal: https://x-access-token:v1.abc@github.com/o/r", "fatal: https://***@github.com/o/r"),
        ("fatal: https://v1token@host/o/r, ssh://git@host/r", "fatal: https://***@host/o/r, ssh://git@host/r"),
        ("sent Authorization: Bearer abc.def", "sent Authorization: Bearer ***"),
        ("jwt eyJhbGciOiJIUzI.eyJzdWIiOiIxMjM0.sig-x", "jwt ***"),
        ("specs/a.yaml:2:1: expected a list, found bearer", "specs/a.yaml:2:1: expected a list, found bearer"),
        ("https://host/a:b@c", "https://host/a:b@c"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str, shown: str) -> None:
    assert mask_secrets(text, {}) == shown


def test_values_of_secret_variables_are_masked() -> None:
    environ = {
        "STORE_KEY": "correct horse",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG",
        "DB_PASSWORD": "short",
        "DEPLOY_KEY": "-----BEGIN-----\nbase64line+/\n-----END-----\n",
        "INFLUX_TOKEN": "correct horse battery",
        "MONKEY_STORE": "s3://bucket",
        "KEYBOARD": "querty-layout",
    }
    text = (
        "correct horse battery, correct horse, wJalrXUtnFEMI/K7MDENG, short, base64line+/, s3://bucket, querty-layout"
    )
    assert mask_secrets(text, environ) == "***, ***, ***, short, ***, s3://bucket, querty-layout"

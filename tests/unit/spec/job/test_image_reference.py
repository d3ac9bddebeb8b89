"""Names of container images."""

from __future__ import annotations

import pytest

from monkey.spec.job.image_reference import is_image_digest, is_image_name, parse_image_reference
from monkey.spec.yaml.mistakes import MistakesError

DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    "text, whole",
    [
        ("python:3.12", "docker.io/library/python:3.12"),
        ("lab/train:v1", "docker.io/lab/train:v1"),
        ("index.docker.io/python:3", "docker.io/library/python:3"),
        ("ghcr.io/lab/deep/train:v1", "ghcr.io/lab/deep/train:v1"),
        ("localhost/train:v1", "localhost/train:v1"),
        ("localhost:5000/train:v1", "localhost:5000/train:v1"),
        ("127.0.0.1:5000/train:v1", "127.0.0.1:5000/train:v1"),
        (f"python@{DIGEST}", f"docker.io/library/python@{DIGEST}"),
        (f"python:3.12@{DIGEST}", f"docker.io/library/python@{DIGEST}"),
    ],
)
def test_a_name_leaves_nothing_to_a_default(text: str, whole: str) -> None:
    assert str(parse_image_reference(text)) == whole
    assert is_image_name(whole)
    assert is_image_name(text) == (text == whole)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "python", "Python:3", "python:3 ", "--privileged", "-v:1", "a b:1", "docker://python:3"),
        *("python@sha256:12", "python:", "/python:3", "a/../b:1", "a\n:1", "x" * 300 + ":1", "python:" + "1" * 129),
        *("ghcr.io:x/a:1", "$(id):1", 3, None, ["python:3"]),
    ],
)
def test_what_is_no_name_of_an_image_is_refused(text: object) -> None:
    with pytest.raises(MistakesError, match="expected"):
        parse_image_reference(text)
    assert not is_image_name(text)


@pytest.mark.parametrize("digest", ["sha256:abc", f"sha512:{'0a' * 64}", ""])
def test_a_digest_of_another_form_is_named(digest: str) -> None:
    with pytest.raises(MistakesError, match="64 hexadecimal digits after python@sha256:") as told:
        parse_image_reference(f"python@{digest}")
    assert digest[:20] in str(told.value)


def test_a_digest_is_known_by_its_form() -> None:
    assert is_image_digest(DIGEST)
    assert not any(map(is_image_digest, ["sha256:ab", DIGEST.upper(), f"{DIGEST}\n", None, 3]))

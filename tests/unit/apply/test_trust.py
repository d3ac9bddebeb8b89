"""Which endpoint a trusted one covers, and which addresses are this machine's own."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from monkey.apply.trust.endpoints import (
    check_endpoints,
    check_transport,
    is_trusted,
    list_forge_endpoints,
    list_report_endpoints,
    list_store_endpoints,
)
from monkey.apply.trust.known_endpoints import KnownEndpoints
from monkey.errors import EndpointRefused
from monkey.spec.project.project import Project, load_project
from tests.trusting import TRUSTED


@pytest.fixture(autouse=True)
def _at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("CI", TRUSTED, "GITHUB_API_URL", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)


def project(root: Path, text: str) -> Project:
    (root / "monkey.yaml").write_text(text)
    return load_project(root)


def at(root: Path, endpoint: str) -> Project:
    return project(root, f"store: {{url: s3://b/p, endpoint: '{endpoint}'}}\n")


def trusted(here: Project) -> bool:
    (endpoint,) = list_store_endpoints(here)
    return is_trusted(here, endpoint)


@pytest.mark.parametrize(
    ("named", "asked", "covered"),
    [
        ("https://a.lab", "https://a.lab", True),
        ("https://a.lab:443/", "https://A.lab", True),
        ("https://a.lab", "https://a.lab/below", True),
        ("https://a.lab/team", "https://a.lab/team/below", True),
        ("https://x.lab,https://a.lab", "https://a.lab", True),
        ("https://a.lab/team", "https://a.lab/teammate", False),
        ("https://a.lab/team", "https://a.lab", False),
        ("https://a.lab/team", "https://a.lab/team/../other", False),
        ("https://a.lab/team", "https://a.lab/team/%2e%2e/other", False),
        ("https://a.lab", "http://a.lab", False),
        ("https://a.lab", "https://a.lab:8443", False),
        ("https://a.lab", "https://a.lab.evil.example", False),
        ("https://a.lab", "https://a.lab\\.evil.example", False),
        ("a.lab", "https://a.lab", False),
        ("https://a.lab:port", "https://a.lab", False),
    ],
)
def test_what_a_trusted_endpoint_covers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, asked: str, covered: bool
) -> None:
    here = at(tmp_path, asked)
    assert not trusted(here)
    monkeypatch.setenv(TRUSTED, named)
    assert trusted(here) is covered


def test_what_was_confirmed_counts_for_one_project_and_in_no_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    one, other = (at(tmp_path / name, "https://a.lab") for name in ("one", "other"))
    known = KnownEndpoints(one.root)
    known.add("https://a.lab")
    assert trusted(one) and not trusted(other)
    for ci, counts in (("true", False), ("1", False), ("false", True), ("", True)):
        monkeypatch.setenv("CI", ci)
        assert trusted(one) is counts
    for text in ("", "[]", "{}", '{"x": 1}', "[" * 10000, '{"' + str(one.root) + '": "https://a.lab"}'):
        known.path.write_text(text)
        assert not trusted(one)


@pytest.mark.parametrize(
    ("url", "stays"),
    [
        ("https://anywhere.example", True),
        ("http://localhost:1", True),
        ("http://127.0.0.1:1", True),
        ("http://127.8.8.8:1", True),
        ("http://[::1]:1", True),
        ("http://192.0.2.1", False),
        ("http://[2001:db8::1]", False),
        ("http://localhost.evil.example", False),
        ("http://127.0.0.1.evil.example", False),
        ("http://0x7f000001", False),
        ("http://lab", False),
    ],
)
def test_plain_text_stays_on_this_machine(tmp_path: Path, url: str, stays: bool) -> None:
    here = at(tmp_path, url)
    (endpoint,) = list_store_endpoints(here)
    if stays:
        check_transport(here, endpoint)
        return
    with pytest.raises(EndpointRefused, match="in plain text") as caught:
        check_transport(here, endpoint)
    assert "monkey.yaml:1:34" in str(caught.value)


def test_an_address_of_this_machine_is_on_it(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no address but loopback's")
        own = way.getsockname()[0]
    here = at(tmp_path, f"http://{own}:9000")
    (endpoint,) = list_store_endpoints(here)
    check_transport(here, endpoint)


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("metrics: {influxdb: {url: 'https://i', bucket: b, token: T}}", ["https://i"]),
        ("metrics: {influxdb: {url: 'https://i', database: d, username: u, password: P}}", ["https://i"]),
        ("metrics: {influxdb: {url: 'http://lab', bucket: b}}", []),
        ("notify: {webhook: 'https://h/x', key: K}", ["https://h/x"]),
        ("notify: [{webhook: 'http://lab/x'}, {webhook: HOOK, key: K}, {slack: S}]", []),
        ("forge: {type: gitea, api: 'https://git.lab/api/v1'}\nnotify: {forge: T}", ["https://git.lab/api/v1"]),
        ("forge: {type: gitea, api: 'https://git.lab/api/v1'}", []),
        ("forge: {type: gitea, repository: lab/sweeps}\nnotify: {forge: T}", []),
    ],
)
def test_what_gets_no_secret_needs_no_word(tmp_path: Path, text: str, urls: list[str]) -> None:
    assert [one.url for one in list_report_endpoints(project(tmp_path, text))] == urls


def test_the_forge_that_ci_names_needs_no_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = project(tmp_path, "forge: {type: gitea, api: 'https://git.lab/api/v1/'}")
    (endpoint,) = list_forge_endpoints(here)
    monkeypatch.setenv("GITHUB_API_URL", "https://other.lab/api/v1")
    with pytest.raises(
        EndpointRefused, match=r"monkey\.yaml:1:27.*credentials for the forge would go to https://git.lab"
    ) as caught:
        check_endpoints(here, [endpoint])
    assert "which asks once" not in str(caught.value), "apply asks about what it sends, and this it does not"
    monkeypatch.setenv("GITHUB_API_URL", "https://git.lab/api/v1")
    check_endpoints(here, [endpoint])


@pytest.mark.parametrize("store", [".monkey/store", "s3://b/p", "gs://b/p", "az://c/p?account=me", "ssh://h/d"])
def test_a_directory_a_cloud_and_a_host_need_no_word(tmp_path: Path, store: str) -> None:
    assert not list_store_endpoints(project(tmp_path, f"store: {store}\n"))

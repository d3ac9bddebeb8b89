"""Who names the endpoint gets the credentials: so no branch alone does, and a user is asked once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop
from tests.acceptance.test_terminal import on_terminal, plain

ONE_JOB = "command: echo {i}\nparameters: {i: [1]}\noutputs: []\n"
SECRET = "hunter2hunter2"
#: Scheme, variables with credentials, and what of them a request shows.
CREDENTIALS = {
    "s3": ("s3://b/p", {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": SECRET}, SECRET),
    "sas": ("az://c/p?account=me", {"AZURE_STORAGE_SAS_TOKEN": f"sv=2021&sig={SECRET}"}, SECRET),
    "bearer": ("az://c/p?account=me", {"AZURE_STORAGE_TOKEN": SECRET}, SECRET),
    "gs": ("gs://b/p", {"GOOGLE_BEARER_TOKEN": SECRET}, SECRET),
}


class Sink:
    """A server of a stranger's, and all that it was sent."""

    def __init__(self, url: str) -> None:
        self.url, self.heard = url, list[str]()


@contextmanager
def listening() -> Iterator[Sink]:
    """Run a server that answers 404 to everything."""

    class Answers(BaseHTTPRequestHandler):
        def __getattr__(self, name: str) -> object:
            if name.startswith("do_"):
                return self._hear
            raise AttributeError(name)

        def _hear(self) -> None:
            made.heard.append(f"{self.command} {self.path}\n{self.headers}")
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    made = Sink(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def sink() -> Iterator[Sink]:
    """Return a running server of a stranger's."""
    with listening() as sink:
        yield sink


def branch(shop: Shop, sink: Sink, kind: str = "s3") -> str:
    """Have the repository's monkey.yaml name the server, where credentials are; returns what a request would show."""
    url, variables, shown = CREDENTIALS[kind]
    shop.spec(ONE_JOB)
    shop.env |= variables
    store = f"{{url: '{url}', endpoint: '{sink.url}'}}"
    (shop.root / "monkey.yaml").write_text(f"project: shop\nstore: {store}\n")
    return shown


@pytest.mark.parametrize("kind", CREDENTIALS)
def test_an_endpoint_that_only_the_branch_names_gets_nothing(shop: Shop, sink: Sink, kind: str) -> None:
    branch(shop, sink, kind)
    said = shop.run("plan", code=1).stderr
    assert not sink.heard
    assert "monkey.yaml:2:" in said and f"would go to {sink.url}, and only the repository says so" in said
    assert "`monkey status`" in said and "MONKEY_TRUSTED_ENDPOINTS=" in said and "--project-file" in said


@pytest.mark.parametrize("verb", ["apply --yes", "status", "push", "push -p job.py", "doctor", "run -- true"])
def test_no_verb_sends_credentials_there(shop: Shop, sink: Sink, verb: str) -> None:
    branch(shop, sink)
    done = shop.run(*verb.split(), code=None)
    assert done.returncode in (1, 125) and "only the repository says so" in done.stderr + done.stdout
    assert not sink.heard


@pytest.mark.parametrize("kind", CREDENTIALS)
def test_what_the_environment_names_gets_them(shop: Shop, sink: Sink, kind: str) -> None:
    shown = branch(shop, sink, kind)
    shop.env["MONKEY_TRUSTED_ENDPOINTS"] = f"https://other.example, {sink.url}/"
    shop.env["CI"] = "true"
    shop.run("plan", code=None)
    assert sink.heard and all(shown in request for request in sink.heard)


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
def test_the_variables_of_amazon_s_tools_count(shop: Shop, sink: Sink, variable: str) -> None:
    branch(shop, sink)
    with listening() as other:
        shop.env[variable] = other.url
        shop.run("plan", code=1)
        assert not sink.heard and not other.heard, "the branch named another one"
    shop.env[variable] = sink.url
    shop.run("plan", code=None)
    assert sink.heard


def test_a_store_of_the_environment_takes_the_place_of_the_repository_s(shop: Shop, sink: Sink, tmp_path: Path) -> None:
    branch(shop, sink)
    shop.env["MONKEY_STORE"] = str(tmp_path / "elsewhere")
    assert "1 new" in shop.run("plan").stdout and not sink.heard
    shop.env["MONKEY_STORE"] = f"s3://b/p?endpoint={sink.url}"
    shop.run("plan", code=None)
    assert sink.heard
    shop.env["MONKEY_STORE"] = "s4://b/p"
    assert "MONKEY_STORE: expected a directory or a URL" in shop.run("plan", code=1).stderr


def test_a_file_that_the_user_chose_is_trusted_and_read_alone(shop: Shop, sink: Sink, tmp_path: Path) -> None:
    branch(shop, sink)
    chosen = tmp_path / "base.yaml"
    chosen.write_text("project: shop\nproviders: {local: {}}\n")
    assert "1 new" in shop.run("plan", "--project-file", str(chosen)).stdout and not sink.heard
    shop.run("apply", "--project-file", str(chosen))
    assert shop.run("status", "--project-file", str(chosen)).stdout and not sink.heard
    chosen.write_text((shop.root / "monkey.yaml").read_text())
    shop.run("plan", "--project-file", str(chosen), code=None)
    assert sink.heard
    chosen.write_text("projekt: shop\n")
    assert f"{chosen}:1:1: unknown key 'projekt'" in shop.run("plan", "--project-file", str(chosen), code=1).stderr
    assert "no such file" in shop.run("plan", "--project-file", "gone.yaml", code=1).stderr


def test_a_user_is_asked_once_for_each_project(shop: Shop, sink: Sink) -> None:
    branch(shop, sink)
    with on_terminal(shop, "apply", "--yes", columns=300) as screen:
        screen.type("n\n")
        assert screen.ended() == 1
    assert "Trust this endpoint in this project? [y/N]" in plain(screen.seen) and not sink.heard
    with on_terminal(shop, "status", CI="1") as screen:
        assert screen.ended() == 1
    assert "Trust this" not in plain(screen.seen) and not sink.heard
    with on_terminal(shop, "status", columns=300) as screen:
        screen.type("y\n")
        assert screen.ended() == 1, "nothing was applied yet"
    known = Path(shop.state, "monkey", "known_endpoints.json")
    assert json.loads(known.read_text()) == {str(shop.root.resolve()): [sink.url]}
    assert known.stat().st_mode & 0o077 == 0 or known.parent.stat().st_mode & 0o077 == 0
    before = len(sink.heard)
    assert before
    shop.run("plan", code=None)
    assert len(sink.heard) > before, "it is not asked again"
    before = len(sink.heard)
    shop.env["CI"] = "1"
    assert "in CI, set MONKEY_TRUSTED_ENDPOINTS" in shop.run("plan", code=1).stderr
    del shop.env["CI"]
    shop.root.rename(shop.root.with_name("other"))
    shop.root = shop.root.with_name("other")
    assert "only the repository says so" in shop.run("plan", code=1).stderr
    assert len(sink.heard) == before


def test_nothing_goes_out_in_plain_text(shop: Shop, tmp_path: Path) -> None:
    """Not even if the environment says so. The name is reserved: nobody has it."""
    shop.spec(ONE_JOB)
    shop.env |= CREDENTIALS["s3"][1]
    place = "http://minio.invalid:9000"
    shop.env["MONKEY_TRUSTED_ENDPOINTS"] = place
    for store in (f"{{url: s3://b/p, endpoint: '{place}'}}", "s3://b/p"):
        (shop.root / "monkey.yaml").write_text(f"project: shop\nstore: {store}\n")
        said = shop.run("plan", code=1).stderr
        assert f"would go to {place} in plain text" in said and "https://" in said
        shop.env["AWS_ENDPOINT_URL"] = place


@pytest.mark.parametrize("verb", ["apply --yes", "run -- true"])
@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("metrics: {{influxdb: {{url: '{}', bucket: b, token: TOKEN}}}}", "2:27"),
        ("notify: [{{slack: HOOK}}, {{webhook: '{}/hook', key: TOKEN}}]", "2:35"),
        ("notify: {{webhook: '{}/hook', key: TOKEN}}", "2:19"),
    ],
)
def test_nor_does_an_agent_send_a_secret_there(shop: Shop, sink: Sink, verb: str, text: str, where: str) -> None:
    shop.spec(ONE_JOB)
    shop.env |= {"TOKEN": SECRET, "HOOK": sink.url}
    (shop.root / "monkey.yaml").write_text(f"project: shop\n{text.format(sink.url)}\n")
    said = shop.run(*verb.split(), code=None)
    assert said.returncode in (1, 125) and f"monkey.yaml:{where}: credentials for" in said.stderr
    assert "`monkey apply` in a terminal" in said.stderr
    assert not sink.heard and not shop.agents and not (shop.root / ".monkey" / "store" / "projects").exists()


def test_doctor_and_backfill_send_no_token_there(shop: Shop, sink: Sink) -> None:
    shop.spec(ONE_JOB)
    shop.run("apply")
    shop.env["TOKEN"] = SECRET
    metrics = f"metrics: {{influxdb: {{url: '{sink.url}', bucket: b, token: TOKEN}}}}"
    (shop.root / "monkey.yaml").write_text(f"project: shop\n{metrics}\n")
    assert "! influxdb: monkey.yaml:2:27: credentials for InfluxDB" in shop.run("doctor", code=1).stdout
    assert "only the repository says so" in shop.run("backfill", "sweep", code=1).stderr
    assert not sink.heard
    shop.env["MONKEY_TRUSTED_ENDPOINTS"] = sink.url
    shop.run("backfill", "sweep", code=None)
    assert any(SECRET in request for request in sink.heard)


def test_a_plan_without_the_store_asks_nobody(shop: Shop, sink: Sink, tmp_path: Path) -> None:
    branch(shop, sink)
    said = shop.run("plan", "--no-store").stdout
    assert "? i=1 = 1 job" in said and "Which jobs are new is unknown" in said and not sink.heard
    found = shop.json("plan", "--no-store")
    assert (found["observed"], found["changes"], found["sweeps"][0]["jobs"]) == (False, None, {"unknown": 1})
    assert "which jobs are new is unknown" in shop.run("plan", "--no-store", "--markdown").stdout
    for other in ("-o plan.json", "--detailed-exitcode", "--keep-stale code"):
        assert "exclude each other" in shop.run("plan", "--no-store", *other.split(), code=1).stderr

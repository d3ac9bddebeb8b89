"""What a forge's refusals mean, where a token is sent, and how long a forge is waited for."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from monkey.ci_run import CiRun
from monkey.errors import ForgeAway, ForgeError
from monkey.forge.open_forge import open_forge
from monkey.forge.rest_client import RestClient, check_api_url
from tests.forges.github_double import BOT, REPOSITORY, GitHubDouble
from tests.services import free_port

TOKEN = "ghs_0123456789abcdefghij"


@pytest.fixture
def double() -> Iterator[GitHubDouble]:
    made = GitHubDouble()
    made.users[TOKEN], made.roles[BOT] = BOT, "write"
    yield made
    made.close()


def client(double: GitHubDouble, waits: list[float] | None = None) -> RestClient:
    wait = ([] if waits is None else waits).append
    return RestClient(double.url, {"Authorization": f"token {TOKEN}"}, TOKEN, wait)


@pytest.mark.parametrize(
    ("status", "headers", "message", "waited"),
    [
        (403, {"Retry-After": "7"}, "You have exceeded a secondary rate limit", [7.0]),
        (429, {"Retry-After": "3"}, "slow down", [3.0]),
        (403, {}, "You have exceeded a secondary rate limit.", [60.0]),
        (429, {}, "slow down", [60.0]),
        (502, {}, "bad gateway", [1.0]),
        (503, {}, "away", [1.0]),
    ],
)
def test_a_forge_that_asks_to_wait_is_asked_again(
    double: GitHubDouble, status: int, headers: dict[str, str], message: str, waited: list[float]
) -> None:
    double.faults.append((status, headers, {"message": message}))
    waits: list[float] = []
    client(double, waits).ask("GET", f"/repos/{REPOSITORY}/pulls")
    assert waits == waited


def test_a_change_that_met_another_is_sent_again(double: GitHubDouble) -> None:
    clash = (500, {}, {"message": "the comment was already changed"})
    double.faults.append(clash)
    waits: list[float] = []
    answer = client(double, waits).ask("PATCH", f"/repos/{REPOSITORY}/issues/comments/1", {"body": ""}, allow=(404,))
    assert (answer.status, waits) == (404, [1.0])
    for method in ("GET", "POST"):  # the one says that something is not there; the other could be done twice
        double.faults.append(clash)
        with pytest.raises(ForgeError, match=r"the forge refused \(500\)"):
            client(double, waits).ask(method, f"/repos/{REPOSITORY}/pulls")
    assert waits == [1.0]


def test_the_limit_of_an_hour_is_waited_for_only_if_it_ends_soon(double: GitHubDouble) -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 3000)}
    double.faults.append((403, headers, {"message": "API rate limit exceeded"}))
    waits: list[float] = []
    with pytest.raises(ForgeError, match=r"takes no more requests for (2999|3000) s"):
        client(double, waits).ask("GET", f"/repos/{REPOSITORY}/pulls")
    assert not waits
    headers["X-RateLimit-Reset"] = str(int(time.time()) + 20)
    double.faults.append((403, headers, {"message": "API rate limit exceeded"}))
    client(double, waits).ask("GET", f"/repos/{REPOSITORY}/pulls")
    assert len(waits) == 1 and 15 < waits[0] <= 20


def test_a_forge_that_stays_away_ends_it(double: GitHubDouble) -> None:
    double.faults += [(503, {}, {"message": "away"})] * 10
    waits: list[float] = []
    with pytest.raises(ForgeError, match=r"refused \(503\): away"):
        client(double, waits).ask("GET", "/user")
    assert waits == [1.0, 2.0, 4.0]


def test_a_forge_that_is_not_there_is_said() -> None:
    api = f"http://127.0.0.1:{free_port()}"
    waits: list[float] = []
    with pytest.raises(ForgeError, match=rf"{api} does not answer: Connection refused"):
        RestClient(api, {}, TOKEN, waits.append).ask("GET", "/user")
    assert waits == [1.0, 2.0, 4.0]


def test_a_forge_that_accepts_and_is_silent_is_asked_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        api = f"http://127.0.0.1:{silent.getsockname()[1]}"
        waits: list[float] = []
        with pytest.raises(ForgeAway, match=rf"{api} does not answer: nothing came within 0 s"):
            RestClient(api, {}, TOKEN, waits.append, silent=0.2).ask("GET", "/user")
        silent.settimeout(5.0)
        silent.accept()[0].close()
        silent.settimeout(0.1)
        with pytest.raises(TimeoutError):
            silent.accept()
    assert not waits


@pytest.mark.parametrize("said", [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
def test_what_is_no_answer_is_said_in_words(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer_all, args=(server, said), daemon=True).start()
        api = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ForgeAway) as caught:
            RestClient(api, {}, TOKEN, [].append).ask("GET", "/user")
        told = caught.value.message.rpartition(": ")[2]
        assert told in (
            "it closed the connection",
            "Connection reset by peer",
            "expected JSON, found something else",
        ) or (told == "expected an answer by HTTP, found something else")
        server.shutdown(socket.SHUT_RDWR)


def answer_all(server: socket.socket, said: bytes) -> None:
    with contextlib.suppress(OSError):
        while True:
            with server.accept()[0] as asked:
                asked.recv(65536)
                asked.sendall(said)


def test_a_token_that_is_not_known_is_said_with_the_place_for_another(double: GitHubDouble) -> None:
    run = CiRun("github", double.url, REPOSITORY)
    for environ, place in (
        ({"MONKEY_FORGE_TOKEN": "wrong"}, "into the variable MONKEY_FORGE_TOKEN"),
        ({"GITHUB_TOKEN": "wrong"}, "into the variable GITHUB_TOKEN, or MONKEY_FORGE_TOKEN"),
    ):
        forge = open_forge(run, {**environ, "GITHUB_API_URL": double.url})
        assert forge is not None
        with pytest.raises(ForgeError, match="does not know the token") as caught:
            forge.name_author()
        assert (caught.value.hint or "").endswith(place)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(double: GitHubDouble, status: int) -> None:
    other = GitHubDouble()
    try:
        for method, body in (("GET", None), ("POST", {"body": "x"})):
            double.faults.append((status, {"Location": f"{other.url}/user"}, None))
            with pytest.raises(ForgeError, match=r"a redirect to 127\.0\.0\.1, where no token is sent"):
                client(double).ask(method, "/user", body)
        assert not other.asked
    finally:
        other.close()


def test_pages_are_asked_for_where_the_token_belongs(double: GitHubDouble) -> None:
    other = GitHubDouble()
    try:
        link = {"Link": f'<{other.url}/repos/{REPOSITORY}/pulls?page=2>; rel="next"'}
        double.faults.append((200, link, [{"id": 1}]))
        assert list(client(double).list_all(f"/repos/{REPOSITORY}/pulls", state="open")) == [{"id": 1}]
        assert len(double.asked) == 2 and not other.asked
    finally:
        other.close()


def test_a_list_without_an_end_is_refused(double: GitHubDouble) -> None:
    double.faults += [(200, {"Link": '<http://x>; rel="next"'}, [{}])] * 1000
    with pytest.raises(ForgeError, match="expected at most 200 pages"):
        list(client(double).list_all("/user"))
    assert len(double.asked) == 200


def test_what_a_refusal_says_shows_no_token_and_no_escapes(double: GitHubDouble) -> None:
    double.faults.append((422, {}, {"message": f"bad \x1b[31m{TOKEN}\u202e", "errors": [{"message": "no\nbody"}]}))
    with pytest.raises(ForgeError) as caught:
        client(double).ask("POST", "/user", {})
    assert str(caught.value).endswith("the forge refused (422): bad [31m***; nobody")


def test_a_refusal_names_the_permissions_that_github_names(double: GitHubDouble) -> None:
    double.roles[BOT] = "read"
    double.open_pull("x", "1" * 40)
    with pytest.raises(ForgeError, match=r"`pull-requests: write` \(issues=write; pull_requests=write\)"):
        client(double).ask(
            "POST", f"/repos/{REPOSITORY}/issues/1/comments", {"body": "x"}, needs="pull-requests: write"
        )


@pytest.mark.parametrize(
    "api",
    ["http://git.example.org/api", "ftp://x", "file:///etc/passwd", "https://", "https://u:p@x", "https://x?a=b", ""],
)
def test_no_token_is_sent_where_others_could_read_it(api: str) -> None:
    with pytest.raises(ForgeError, match="expected a forge's API at https://HOST"):
        check_api_url(api)


def test_plain_http_is_for_this_machine_and_for_what_ci_names() -> None:
    for api in ("https://x/api", "http://127.0.0.1:3000/api", "http://localhost/api", "http://[::1]:3000"):
        assert check_api_url(f"{api}/") == api
    lab = "http://git.lab/api/v1"
    assert check_api_url(lab, trusted=True) == lab
    run = CiRun("gitea", lab, "lab/sweeps")
    assert open_forge(run, {"GITEA_TOKEN": "x", "GITHUB_API_URL": f"{lab}/"}) is not None
    with pytest.raises(ForgeError, match="expected a forge's API at https://HOST"):
        open_forge(run, {"GITEA_TOKEN": "x", "GITHUB_API_URL": "http://git.other/api/v1"})

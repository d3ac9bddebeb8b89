"""Who may ask: with cookie and key, from our own origin, by a name of ours; all others are refused."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from monkey.protocol.sweeps.sweep_log import read_sweep
from monkey.web.page_guard import KEY_HEADER, refuse_request
from tests.unit.web.pages import Page, serving

ASKED = ("sweeps", "sweep/small", "failures/small", "machines", "curves/small?jobs=&metric=loss", "events")


def test_without_the_token_nothing_is_shown_and_with_it_all(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, known=False) as page:
            job = f"small/{page.jobs[0]}"
            paths = [*ASKED, f"job/{job}", f"log/{job}", f"job-curves/{job}"]
            for path in paths:
                assert (await page.ask("GET", f"api/{path}"))[0] == 401, path
            for order in ("pause", "resume", "cancel", "retry"):
                assert (await page.post(f"orders/{order}", sweep="small"))[0] == 401
            for token in ("", "x", page.guard.token + "x", None, 1, ["x"], "é"):
                assert (await page.post("login", token=token))[0] == 401
            await page.log_in()
            for path in set(paths) - {"events"}:
                await page.get(path)

    asyncio.run(main())


def test_the_cookie_alone_and_the_key_alone_are_not_enough(tmp_path: Path) -> None:
    """A browser sends the cookie to each port of the machine, so others may have seen it."""

    async def main() -> None:
        async with serving(tmp_path) as page:
            cookies = list(page.session.cookie_jar)
            assert [(one["httponly"], one["samesite"]) for one in cookies] == [(True, "Strict")]
            assert (await page.ask("GET", "api/sweeps", headers={KEY_HEADER: None}))[0] == 401
            assert (await page.ask("GET", "api/sweeps", headers={KEY_HEADER: "x"}))[0] == 401
            page.session.cookie_jar.clear()
            assert (await page.ask("GET", "api/sweeps"))[0] == 401

    asyncio.run(main())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Host": "127.0.0.1.evil.example:80"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_other_names_and_other_pages_are_refused(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    async def main() -> None:
        async with serving(tmp_path) as page:
            assert (await page.ask("GET", "api/sweeps", headers=headers))[0] == status
            assert (await page.ask("POST", "api/orders/pause", headers=headers, json={"sweep": "small"}))[0] == status
            state = await read_sweep(page.world.at, page.world.keys, page.world.signers, "small")
            assert state.paused is (status == 200)

    asyncio.run(main())


def test_only_a_post_of_json_with_an_origin_changes_anything(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as page:
            body: dict[str, Any] = {"json": {"sweep": "small"}}
            for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"):
                status, _ = await page.ask(method, "api/orders/pause", **body)
                assert status in (404, 405), method
            assert (await page.ask("POST", "api/orders/pause", headers={"Origin": None}, **body))[0] == 403
            form = {"data": '{"sweep": "small"}', "headers": {"Content-Type": "text/plain"}}
            assert (await page.ask("POST", "api/orders/pause", **form))[0] == 403
            head = (await read_sweep(page.world.at, page.world.keys, page.world.signers, "small")).head
            assert head == 1

    asyncio.run(main())


def raw_get(port: int, path: str) -> bytes:
    """Ask without a client that would tidy the path up."""
    with socket.create_connection(("127.0.0.1", port), 5) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: line.recv(65536), b""))


@pytest.mark.parametrize(
    "path",
    [
        *("/../../../../etc/passwd", "/assets/../../../../etc/passwd", "/assets/..%2f..%2f..%2fetc%2fpasswd"),
        *("/assets/%2e%2e/page_guard.py", "/assets/..%5c..%5cetc", "//etc/passwd", "/assets//etc/passwd"),
        *("/assets/VENDORED.md", "/assets/", "/assets/.", "/assets/index.html%00.js", "/etc/passwd"),
    ],
)
def test_no_path_leads_out_of_the_assets(tmp_path: Path, path: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, known=False) as page:
            answer = await asyncio.to_thread(raw_get, page.guard.port, path)
            assert answer.split()[1] in (b"404", b"400") and b"root:" not in answer

    asyncio.run(main())


def test_every_answer_has_the_headers(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as page:
            for path in ("", "assets/none", "api/none", "api/sweeps", "api/sweep/none"):
                async with page.session.get(page.address + path, headers={KEY_HEADER: page.key}) as answer:
                    policy = answer.headers["Content-Security-Policy"]
                    assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy
                    assert answer.headers["Referrer-Policy"] == "no-referrer"
                    assert answer.headers["X-Content-Type-Options"] == "nosniff"
                    assert answer.headers["Cache-Control"] == "no-store" and "Server" not in answer.headers

    asyncio.run(main())


def test_behind_a_proxy_the_page_only_shows(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, base_url="https://lab.example/monkey", known=False) as page:
            there = {"Host": "lab.example", "Origin": "https://lab.example"}
            status, body = await page.ask("POST", "api/login", headers=there, json={"token": page.guard.token})
            (cookie,) = page.session.cookie_jar
            assert status == 200 and cookie["secure"]
            await give_cookie(page, {**there, KEY_HEADER: body["key"]}, cookie.key, cookie.value)

    async def give_cookie(page: Page, headers: dict[str, str], name: str, value: str) -> None:
        headers["Cookie"] = f"{name}={value}"  # the proxy speaks plain HTTP to us
        status, shown = await page.ask("GET", "api/sweeps", headers=headers)
        assert status == 200 and shown["read_only"]
        status, _ = await page.ask("POST", "api/orders/pause", headers=headers, json={"sweep": "small"})
        assert status == 403

    asyncio.run(main())


def test_refusal_says_why_and_what_to_do() -> None:
    answer = refuse_request(404, "no sweep 'x'", "`monkey list sweeps` names them")
    assert answer.status == 404 and answer.text is not None
    assert json.loads(answer.text) == {"error": "no sweep 'x'", "hint": "`monkey list sweeps` names them"}


def test_page_answers_under_the_name_of_this_machine_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as page:
            headers = {"Host": f"localhost:{page.guard.port}", "Origin": f"http://localhost:{page.guard.port}"}
            assert (await page.ask("GET", "api/sweeps", headers=headers))[0] == 200

    asyncio.run(main())

"""The same data into an S3 server that counts requests, and to a host by SSH: servers of our own, the same for all."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from _common import ensure, run
from _contest import Contest

sys.path.append(str(Path(__file__).resolve().parent.parent))  # the servers are those of the tests
from tests import sshd

#: What the contestants are, and where they come from.
AWS, DVC_S3 = "awscli", "dvc[s3]==3.67.1"

#: One cipher for all.
CIPHER = "aes128-gcm@openssh.com"

#: Seconds that every byte is late, each way, where round trips are counted.
DELAY = 0.025

#: moto's S3, which counts, one request at a time: `GET /-/count` tells how many since the last such question.
_MOTO = """
import sys, threading
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple
app, lock, count = DomainDispatcherApplication(create_backend_app), threading.Lock(), [0]
class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_request(self, *words): pass
def in_turn(environ, start):
    with lock:
        if environ["PATH_INFO"] == "/-/count":
            start("200 OK", [("Content-Type", "text/plain")])
            said, count[0] = str(count[0]).encode(), 0
            return [said]
        count[0] += 1
        return app(environ, start)
run_simple("127.0.0.1", int(sys.argv[1]), in_turn, threaded=True, request_handler=Quiet)
"""


def _ask(url: str, method: str = "GET") -> bytes:
    request = urllib.request.Request(url, method=method, headers={"Content-Length": "0"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        said: bytes = answer.read()
        return said


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def moto() -> Iterator[str]:
    """Run the server, with a bucket in it; gives its endpoint."""
    port = _free_port()
    with subprocess.Popen([sys.executable, "-c", _MOTO, str(port)], stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 60
            while socket.socket().connect_ex(("127.0.0.1", port)):
                if time.monotonic() > deadline or process.poll() is not None:
                    raise SystemExit("moto's server does not answer: pip install 'moto[server,s3]'")
                time.sleep(0.05)
            _ask(f"http://127.0.0.1:{port}/bucket", "PUT")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


class S3Contest(Contest):
    """`aws s3 sync` and `dvc push` beside ours, into one bucket; DVC and ours push what DVC tracks."""

    def __init__(self, home: Path, data: Path, endpoint: str) -> None:
        """Track `data` in a DVC repository of its own."""
        super().__init__(home, data)
        self._endpoint = endpoint
        self._aws, self._dvc = ensure("awscli", AWS), ensure("dvc-s3", DVC_S3)
        self.contestants = ("monkey", *(["aws"] if self._aws else []), *(["dvc"] if self._dvc else []))
        keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
        site = {"DVC_SITE_CACHE_DIR": str(home / "site"), "DVC_NO_ANALYTICS": "1"}
        self._env = {**keys, **site, "HOME": str(home), "AWS_EC2_METADATA_DISABLED": "true"}
        self._repository = home / "repository"
        if self._dvc:
            self._repository.mkdir()
            shutil.copytree(data, self._repository / "data")
            self._in_dvc("init", "-q", "--no-scm")
            self._in_dvc("add", "-q", "data")

    def counted(self) -> int:
        """See `Contest.counted`: what the server counted."""
        return int(_ask(f"{self._endpoint}/-/count"))

    def _in_dvc(self, *words: str) -> float:
        return run([str(self._dvc), "-m", "dvc", *words], cwd=self._repository, env=self._env).seconds

    def monkey_second(self) -> float:
        """Push, the hashes known from the second time on."""
        home = self._last["monkey"]
        (home / "monkey.yaml").write_text(
            f"store: s3://bucket/{home.name}?endpoint={self._endpoint}&region=us-east-1\n"
        )
        return self._push(str(self._data), home, {**self._env, "XDG_CACHE_HOME": str(home / "cache")})

    def aws_first(self) -> float:
        """Sync to a new prefix."""
        self._new("aws")
        return self.aws_second()

    def aws_second(self) -> float:
        """Sync again."""
        to = f"s3://bucket/{self._last['aws'].name}"
        aws = [str(self._aws), "-m", "awscli", "--endpoint-url", self._endpoint]
        return run([*aws, "s3", "sync", "--quiet", str(self._data), to], env=self._env).seconds

    def dvc_first(self) -> float:
        """Push to a new remote; the hashes are known, and the files in DVC's cache."""
        name = self._new("dvc").name
        self._in_dvc("remote", "add", "-q", "-f", "-d", "bench", f"s3://bucket/{name}")
        self._in_dvc("remote", "modify", "-q", "bench", "endpointurl", self._endpoint)
        self.counted()
        return self.dvc_second()

    def dvc_second(self) -> float:
        """Push again."""
        return self._in_dvc("push", "-q")


class SshContest(Contest):
    """`rsync -a` beside ours, to an OpenSSH server."""

    contestants = ("monkey", "rsync")

    def __init__(self, home: Path, data: Path, server: sshd.Sshd) -> None:
        """Send `data` to `server`."""
        super().__init__(home, data)
        self._server, self._host = server, "there"

    def monkey_second(self) -> float:
        """Push, the hashes known from the second time on."""
        home = self._last["monkey"]
        (home / "monkey.yaml").write_text(f"store: ssh://{self._host}{home / 'store'}\n")
        env = {"HOME": str(self._server.home), "XDG_CACHE_HOME": str(home / "cache")}
        return self._push(str(self._data), home, env)

    def rsync_first(self) -> float:
        """Copy to a new directory."""
        self._new("rsync")
        return self.rsync_second()

    def rsync_second(self) -> float:
        """Do it again."""
        config = self._server.home / ".ssh"
        ssh = f"ssh -F {config / 'config'} -o UserKnownHostsFile={config / 'known_hosts'}"
        to = f"{self._host}:{self._last['rsync'] / 'copy'}"
        return run(["rsync", "-a", "-e", ssh, f"{self._data}/", to]).seconds

    def round_trips(self) -> dict[str, float]:
        """Return how many each waits for when all is there: what a delay of every byte costs, by the delay."""
        found = {}
        with late(self._server):
            for who in self.contestants:
                again = getattr(self, f"{who}_second")
                self._host = "there"
                near = min(again() for _ in range(3))
                self._host = "far"
                found[who] = (min(again() for _ in range(3)) - near) / (2 * DELAY)
        self._host = "there"
        return found


@contextlib.contextmanager
def ssh_server(home: Path) -> Iterator[sshd.Sshd]:
    """Run one that knows a single cipher."""
    with sshd.serve(home, f"Subsystem sftp /usr/lib/openssh/sftp-server\nCiphers {CIPHER}\n") as server:
        yield server


@contextlib.contextmanager
def late(server: sshd.Sshd) -> Iterator[None]:
    """Have the same server answer as the host `far` too, every byte `DELAY` seconds late each way."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    listening = asyncio.run_coroutine_threadsafe(_listen(server.port), loop).result(10)
    port = listening.sockets[0].getsockname()[1]
    config, known = server.home / ".ssh" / "config", server.known_hosts
    before = config.read_text(), known.read_text()
    config.write_text(before[0] + before[0].replace("Host there", "Host far").replace(str(server.port), str(port)))
    known.write_text(before[1] + before[1].replace(f":{server.port} ", f":{port} "))
    try:
        yield
    finally:
        config.write_text(before[0])
        known.write_text(before[1])
        asyncio.run_coroutine_threadsafe(_end(listening), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def _listen(port: int) -> asyncio.Server:
    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inside, outside = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_carry(reader, outside), _carry(inside, writer))

    return await asyncio.start_server(meet, "127.0.0.1", 0)


async def _end(listening: asyncio.Server) -> None:
    listening.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 18):
            loop.call_later(DELAY, writer.write, data)
    loop.call_later(DELAY, writer.close)

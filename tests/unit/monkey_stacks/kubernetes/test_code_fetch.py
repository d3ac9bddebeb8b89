"""The init container's source, run by a Python without anything of ours, as in a pod."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import subprocess
import sys
import threading
from pathlib import Path

from monkey.spec.project.engines.kubernetes_settings import KubernetesSettings
from monkey_stacks.bundle.bundle import pack_files
from monkey_stacks.kubernetes.manifests.pilot_manifests import PilotShape, write_pod_spec

TAR = pack_files({"__main__.py": b"print('it runs')\n", "monkey/x.py": b""})
SHA256 = hashlib.sha256(TAR).hexdigest()


def fetch(links: list[str], base: Path, sha256: str = SHA256) -> subprocess.CompletedProcess[str]:
    """Run the container's command, with `base` in place of the pod's root."""
    handed, place = base / "handed", base / "monkey"
    for directory in (handed, place):
        directory.mkdir()
    (handed / "links").write_text("\n".join(links))
    for name in ("settings.json", "credentials.json", "secrets", "signers"):
        (handed / name).write_text(f"{name}\n")
    shape = PilotShape(KubernetesSettings("prod", "x"), "label", sha256, 10)
    words = write_pod_spec(shape)["initContainers"][0]["command"]
    assert words[0] == "python3" and words[5:7] == ["/handed", "/monkey"]
    command = [sys.executable, *words[1:5], str(handed), str(place), sha256]
    return subprocess.run(command, capture_output=True, text=True, cwd="/")


def write_bundle(base: Path) -> list[str]:
    """Write the parts of the bundle, and return where they are."""
    half = len(TAR) // 2
    paths = [base / "part0", base / "part1"]
    for path, piece in zip(paths, (TAR[:half], TAR[half:]), strict=True):
        path.write_bytes(gzip.compress(piece))
    return [*map(str, paths)]


def test_code_comes_from_a_volume_and_files_are_for_their_user_alone(tmp_path: Path) -> None:
    done = fetch(write_bundle(tmp_path), tmp_path)
    assert done.returncode == 0, done.stderr
    place = tmp_path / "monkey"
    run = subprocess.run([sys.executable, "-I", "-S", place / "code"], capture_output=True, text=True)
    assert run.stdout == "it runs\n"
    modes = {path.name: path.stat().st_mode & 0o777 for path in (place / "fleet").iterdir()}
    assert set(modes.values()) == {0o600} and len(modes) == 4
    assert (place / "home").stat().st_mode & 0o777 == 0o700


def test_what_cannot_be_fetched_ends_the_pilot_for_good(tmp_path: Path) -> None:
    done = fetch([*write_bundle(tmp_path), "/nowhere/part2"], tmp_path)
    assert done.returncode == 78 and "the agent's code is not at /nowhere/part2" in done.stderr


def test_other_code_than_was_put_there_is_refused(tmp_path: Path) -> None:
    done = fetch(write_bundle(tmp_path), tmp_path, "0" * 64)
    assert done.returncode == 78 and "is another than" in done.stderr


def test_code_comes_by_a_link_and_a_refusal_is_not_tried_again(tmp_path: Path) -> None:
    parts = {f"/{Path(each).name}?signature=x": Path(each).read_bytes() for each in write_bundle(tmp_path)}
    asked = []

    class Bucket(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if self.path in parts else 403)
            self.end_headers()
            self.wfile.write(parts.get(self.path, b""))

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        for number, (sign, code) in enumerate((("x", 0), ("old", 78))):
            base = tmp_path / str(number)
            base.mkdir()
            done = fetch([f"{url}/part{part}?signature={sign}" for part in range(2)], base)
            assert done.returncode == code, done.stderr
    finally:
        server.shutdown()
        server.server_close()
    assert "the store refuses the agent's code (403 Forbidden): run `monkey apply`" in done.stderr
    assert asked == [*parts, "/part0?signature=old"]

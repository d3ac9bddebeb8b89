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


def fetch(link: str, base: Path, sha256: str = SHA256) -> subprocess.CompletedProcess[str]:
    """Run the container's command, with `base` in place of the pod's root."""
    handed, place = base / "handed", base / "monkey"
    for directory in (handed, place):
        directory.mkdir()
    (handed / "link").write_text(link)
    for name in ("settings.json", "credentials.json", "secrets", "signers"):
        (handed / name).write_text(f"{name}\n")
    shape = PilotShape(KubernetesSettings("prod", "x"), "label", sha256, 10)
    words = write_pod_spec(shape)["initContainers"][0]["command"]
    assert words[0] == "python3" and words[5:7] == ["/handed", "/monkey"]
    command = [sys.executable, *words[1:5], str(handed), str(place), sha256]
    return subprocess.run(command, capture_output=True, text=True, cwd="/")


def write_bundle(base: Path) -> Path:
    path = base / "bundle.tar.gz"
    path.write_bytes(gzip.compress(TAR))
    return path


def test_code_comes_from_a_volume_and_files_are_for_their_user_alone(tmp_path: Path) -> None:
    done = fetch(str(write_bundle(tmp_path)), tmp_path)
    assert done.returncode == 0, done.stderr
    place = tmp_path / "monkey"
    run = subprocess.run([sys.executable, "-I", "-S", place / "code"], capture_output=True, text=True)
    assert run.stdout == "it runs\n"
    modes = {path.name: path.stat().st_mode & 0o777 for path in (place / "fleet").iterdir()}
    assert set(modes.values()) == {0o600} and len(modes) == 4
    assert (place / "home").stat().st_mode & 0o777 == 0o700


def test_what_cannot_be_fetched_ends_the_pilot_for_good(tmp_path: Path) -> None:
    done = fetch("/nowhere/bundle", tmp_path)
    assert done.returncode == 78 and "the agent's code is not at /nowhere/bundle" in done.stderr


def test_other_code_than_was_put_there_is_refused(tmp_path: Path) -> None:
    done = fetch(str(write_bundle(tmp_path)), tmp_path, "0" * 64)
    assert done.returncode == 78 and "is another than" in done.stderr


def test_code_comes_by_a_link_and_a_refusal_is_not_tried_again(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path).read_bytes()
    asked = []

    class Bucket(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            found = self.path == "/bundle?signature=x"
            self.send_response(200 if found else 403)
            self.end_headers()
            self.wfile.write(bundle if found else b"")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/bundle?signature="
        for number, (sign, code) in enumerate((("x", 0), ("old", 78))):
            base = tmp_path / str(number)
            base.mkdir()
            done = fetch(url + sign, base)
            assert done.returncode == code, done.stderr
    finally:
        server.shutdown()
        server.server_close()
    assert "the store refuses the agent's code (403 Forbidden): run `monkey apply`" in done.stderr
    assert asked == ["/bundle?signature=x", "/bundle?signature=old"]

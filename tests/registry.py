"""A real registry of images (Debian's `docker-registry`), and images that are made without a builder."""

from __future__ import annotations

import base64
import contextlib
import datetime
import gzip
import hashlib
import http.server
import io
import ipaddress
import json
import ssl
import tarfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.services import free_port, serve_program

#: The one user of a registry that asks for a login, with bcrypt's hash of the password.
USER, PASSWORD = "ada", "secret"
_HASH = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"
_CONFIG = """
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {home}/storage}}}}
http: {{addr: "127.0.0.1:{port}"{tls}}}
"""
_TLS = ", tls: {{certificate: {home}/certificate.pem, key: {home}/key.pem}}"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_HOME = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass
class Registry:
    """A registry at `name`, as it stands in names of images."""

    name: str
    #: For a registry with a certificate of its own: the file that has it.
    certificate: str = ""
    #: For a registry that gives tokens: its key with the certificate.
    signer: TokenSigner | None = None
    #: For a registry that asks for a name and a password.
    login: str = ""

    def push(self, repository: str, tag: str, files: Mapping[str, bytes | str], env: tuple[str, ...] = ()) -> str:
        """Push an image of these files (path to content, or to where a link leads) as `tag`; return its digest."""
        layer = _pack(files)
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Env": [_HOME, *env]},
                "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
                "history": [{"created_by": "tests"}],
            }
        ).encode()
        packed = gzip.compress(layer, 1, mtime=0)
        manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": _MANIFEST,
                "config": _describe("config.v1+json", config),
                "layers": [_describe("layer.v1.tar+gzip", packed)],
            }
        ).encode()
        for blob in (config, packed):
            location = self._send("POST", f"/v2/{repository}/blobs/uploads/", b"", repository)["location"]
            self._send("PUT", f"{location}&digest={_digest(blob)}", blob, repository)
        kind = {"Content-Type": _MANIFEST}
        said = self._send("PUT", f"/v2/{repository}/manifests/{tag}", manifest, repository, kind)
        assert said["docker-content-digest"] == _digest(manifest)
        return _digest(manifest)

    def _send(
        self, method: str, url: str, body: bytes, repository: str, headers: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        url = url if url.startswith("http") else f"{'https' if self.certificate else 'http'}://{self.name}{url}"
        headers = {"Content-Type": "application/octet-stream", **(headers or {})}
        if self.login:
            headers["Authorization"] = "Basic " + base64.b64encode(self.login.encode()).decode()
        if self.signer:
            headers["Authorization"] = "Bearer " + self.signer.sign(self.name, repository, ["pull", "push"])
        request = urllib.request.Request(url, body, headers, method=method)
        trusted = ssl.create_default_context(cafile=self.certificate or None)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusted)
        )
        with opener.open(request, timeout=30) as answer:
            return {key.lower(): value for key, value in answer.headers.items()}


@contextlib.contextmanager
def serve_registry(home: Path, *, login: bool = False, tokens: bool = False, tls: bool = False) -> Iterator[Registry]:
    """Run a registry on loopback; `login`: it asks for a password, `tokens`: it has clients fetch tokens with that.

    `tls`: it has a certificate of its own, and speaks HTTPS alone.
    """
    port = free_port()
    config = _CONFIG.format(home=home, port=port, tls=_TLS.format(home=home) if tls else "")
    registry = Registry(f"127.0.0.1:{port}")
    with contextlib.ExitStack() as stack:
        if login:
            (home / "passwords").write_text(f"{USER}:{_HASH}\n")
            config += f"auth: {{htpasswd: {{realm: test, path: {home}/passwords}}}}\n"
            registry.login = f"{USER}:{PASSWORD}"
        if tls:
            TokenSigner(home / "certificate.pem", home / "key.pem")
            registry.certificate = str(home / "certificate.pem")
        if tokens:
            registry.signer = TokenSigner(home / "certificate.pem")
            realm = stack.enter_context(_serve_tokens(registry))
            said = f"realm: '{realm}', service: '{registry.name}', rootcertbundle: {home}/certificate.pem"
            config += f"auth: {{token: {{{said}, issuer: test}}}}\n"
        (home / "config.yml").write_text(config)
        stack.enter_context(serve_program(["docker-registry", "serve", str(home / "config.yml")], port))
        yield registry


class TokenSigner:
    """The key of a server that gives tokens, as the big registries have one."""

    def __init__(self, certificate: Path, key: Path | None = None) -> None:
        """Make a key, and write its certificate, which is good for 127.0.0.1, to a file; and the key to `key`."""
        self._key = rsa.generate_private_key(65537, 2048)
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
        now = datetime.datetime.now(datetime.UTC)
        made = x509.CertificateBuilder(name, name, self._key.public_key(), x509.random_serial_number())
        made = made.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        made = made.add_extension(names, critical=False)
        self._certificate = made.sign(self._key, hashes.SHA256())
        certificate.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))
        if key is not None:
            kind = serialization.PrivateFormat.TraditionalOpenSSL
            key.write_bytes(self._key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()))

    def sign(self, service: str, repository: str, actions: list[str]) -> str:
        """Return a token (JWT) for a repository."""
        der = self._certificate.public_bytes(serialization.Encoding.DER)
        header = {"typ": "JWT", "alg": "RS256", "x5c": [base64.b64encode(der).decode()]}
        now = int(time.time())
        claims = {"iss": "test", "sub": "", "aud": service, "exp": now + 300, "nbf": now - 60, "iat": now, "jti": "1"}
        claims["access"] = [{"type": "repository", "name": repository, "actions": actions}]
        text = ".".join(_encode(json.dumps(part).encode()) for part in (header, claims))
        return f"{text}.{_encode(self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


@contextlib.contextmanager
def _serve_tokens(registry: Registry) -> Iterator[str]:
    """Run a server that gives tokens: for `public/…` to everybody, for the rest to the user alone; yield its URL."""

    class Tokens(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = parse_qs(urlsplit(self.path).query)
            repository = asked["scope"][0].split(":")[1]
            known = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            allowed = repository.startswith("public/") or self.headers.get("Authorization") == known
            assert registry.signer is not None and asked["service"] == [registry.name]
            token = registry.signer.sign(registry.name, repository, ["pull"] if allowed else [])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"token": token}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tokens) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/token"
        finally:
            server.shutdown()


def _pack(files: Mapping[str, bytes | str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.mode = 0o755
            if isinstance(data, str):
                info.type, info.linkname = tarfile.SYMTYPE, data
                tar.addfile(info)
            else:
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _describe(kind: str, data: bytes) -> dict[str, object]:
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": _digest(data), "size": len(data)}


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

"""An InfluxDB whose certificate no authority signed gets nothing, and the reason names the certificate."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from monkey.metrics.influx.influx_check import inspect_influx
from monkey.metrics.influx.influx_client import InfluxClient, InfluxUnavailable
from monkey.spec.project.influx_settings import InfluxSettings

SECRETS = {"TOKEN": "s3cret"}


def sign_itself(to: Path) -> Path:
    """Write a certificate for 127.0.0.1 that its own key signed, with that key; return the file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "influx")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    days = datetime.timedelta(days=1)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - days).not_valid_after(now + days)
    made = made.add_extension(address, critical=False).add_extension(x509.BasicConstraints(True, None), critical=True)
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    text = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    to.write_bytes(text + made.sign(key, hashes.SHA256()).public_bytes(pem))
    return to


class Listener(BaseHTTPRequestHandler):
    """Answers every request with 501, and counts them."""

    requests = 0

    def do_POST(self) -> None:
        type(self).requests += 1
        self.send_error(501)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return sign_itself(tmp_path / "server.pem")


@pytest.fixture
def place(certificate: Path) -> Iterator[InfluxSettings]:
    """Serve https on a port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield InfluxSettings(f"https://127.0.0.1:{server.server_port}", "bucket", "org", token="TOKEN")
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_certificate_is_named_by_what_sends_points_and_by_doctor(place: InfluxSettings) -> None:
    before, client = Listener.requests, InfluxClient(place, SECRETS)
    with pytest.raises(InfluxUnavailable) as caught:
        client.write(b"m v=1")
    client.close()
    assert str(caught.value) == "its certificate is not accepted: self-signed certificate"
    found = inspect_influx(place, SECRETS)
    assert found.trouble == f"{place.url}: its certificate is not accepted: self-signed certificate"
    assert "SSL_CERT_FILE" in found.hint
    assert Listener.requests == before, "no request was sent"


def test_the_variable_that_the_hint_names_helps_both(
    place: InfluxSettings, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    client = InfluxClient(place, SECRETS)
    with pytest.raises(InfluxUnavailable, match="501"):
        client.write(b"m v=1")
    client.close()
    assert "certificate" not in inspect_influx(place, SECRETS).trouble


def test_a_port_that_refuses_is_named_so() -> None:
    client = InfluxClient(InfluxSettings("https://127.0.0.1:1", "bucket", "org", token="TOKEN"), SECRETS)
    with pytest.raises(InfluxUnavailable, match="connection refused"):
        client.write(b"m v=1")
    client.close()

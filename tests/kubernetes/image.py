"""An image with this machine's Python, made of files alone: no registry, no daemon, no builder."""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

#: What an image has besides Python: programs that jobs call.
PROGRAMS = ("/bin/sh", "/bin/sleep", "/usr/bin/env", "/bin/cat")
#: Libraries that compiled modules of agents load, though Python itself does not.
LIBRARIES = ("libgcc_s.so.1", "librt.so.1", "libdl.so.2", "libpthread.so.0", "libutil.so.1", "libresolv.so.2")
PAUSE = r"""
#include <signal.h>
#include <unistd.h>
static void bye(int s) { _exit(0); }
int main() { signal(SIGTERM, bye); signal(SIGINT, bye); signal(SIGCHLD, SIG_IGN); for (;;) pause(); }
"""


#: A file that the second image has, and the first has not.
VARIANT_FILE = "/etc/variant"


def write_python_images(name: str, variant: str, out: Path) -> None:
    """Write two images, as `ctr images import` reads them, in which `python3` is that of this machine.

    `variant` names the one that has VARIANT_FILE, too.
    """
    layer, more = _write_layer(*list_python_files()), _write_layer({VARIANT_FILE: b"variant\n"}, {})
    _write_images({name: [layer], variant: [layer, more]}, out)


def list_python_files() -> tuple[dict[str, bytes], dict[str, str]]:
    """Return the files of an image in which `python3` is that of this machine, and its links."""
    python = Path("/usr/bin/python3").resolve()
    library = Path(f"/usr/lib/{python.name}")
    files = {str(python): python, **{program: Path(program).resolve() for program in PROGRAMS}}
    files |= {str(path): path for path in library.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    binaries = [python, *(Path(program) for program in PROGRAMS), *library.rglob("*.so")]
    files |= {str(path): path.resolve() for path in _list_libraries(binaries)}
    files |= {str(path): path.resolve() for name in LIBRARIES for path in Path("/usr/lib").glob(f"*/{name}")}
    files["/etc/ssl/certs/ca-certificates.crt"] = Path("/etc/ssl/certs/ca-certificates.crt")
    links = {"/usr/bin/python3": python.name, "/lib": "usr/lib", "/lib64": "usr/lib64", "/bin": "usr/bin"}
    plain = {_lower(path): source.read_bytes() for path, source in files.items()}
    return {**plain, "/etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n"}, links


def write_pause_image(name: str, out: Path, aside: Path) -> None:
    """Write the image of what holds a pod's namespaces, built in the directory `aside`."""
    program = aside / "pause"
    subprocess.run(["gcc", "-static", "-Os", "-o", str(program), "-xc", "-"], input=PAUSE.encode(), check=True)
    _write_images({name: [_write_layer({"/pause": program.read_bytes()}, {})]}, out, ["/pause"])


def _lower(path: str) -> str:
    """Return a path as it is where /bin and /lib are links into /usr."""
    return re.sub(r"^/(bin|lib|lib64)/", r"/usr/\1/", path)


def _list_libraries(binaries: Iterable[Path]) -> Iterator[Path]:
    names = [str(path) for path in binaries]
    said = subprocess.run(["ldd", *names], capture_output=True, text=True).stdout
    yield from {Path(found) for found in re.findall(r"(/[^\s:()]+\.so[^\s:()]*) \(0x", said)}


def _write_layer(files: dict[str, bytes], links: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, data in sorted(files.items()):
            member = tarfile.TarInfo(path.lstrip("/"))
            member.size, member.mode = len(data), 0o755
            tar.addfile(member, io.BytesIO(data))
        for path, target in links.items():
            member = tarfile.TarInfo(path.lstrip("/"))
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
        member = tarfile.TarInfo("tmp")
        member.type, member.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(member)
    return out.getvalue()


def _write_images(images: dict[str, list[bytes]], out: Path, entry: list[str] | None = None) -> None:
    """Write images by their names, each of these layers."""
    files, manifest = dict[str, bytes](), []
    for name, layers in images.items():
        digests = [hashlib.sha256(layer).hexdigest() for layer in layers]
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/usr/bin:/bin"], **({"Entrypoint": entry} if entry else {})},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
            "history": [{"created_by": "tests"}] * len(layers),
        }
        said = json.dumps(config).encode()
        its = f"{hashlib.sha256(said).hexdigest()}.json"
        files |= {its: said} | {f"{digest}.tar": layer for digest, layer in zip(digests, layers, strict=True)}
        manifest.append({"Config": its, "RepoTags": [name], "Layers": [f"{digest}.tar" for digest in digests]})
    files["manifest.json"] = json.dumps(manifest).encode()
    with tarfile.open(out, "w") as tar:
        for file, data in files.items():
            member = tarfile.TarInfo(file)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


if __name__ == "__main__":
    write_python_images(sys.argv[1], f"{sys.argv[1]}-variant", Path(sys.argv[2]))

"""In a machine: loads modules of the kernel with what they need, without kmod."""

import ctypes
import os
import sys
from pathlib import Path

#: finit_module, on x86-64.
FINIT_MODULE = 313

if __name__ == "__main__":
    modules = Path("/usr/lib/uml/modules", os.uname().release)
    needs = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, others = line.partition(":")
        needs[Path(path).stem] = [path, *others.split()]
    for name in sys.argv[1:]:
        for path in reversed(needs[name]):
            fd = os.open(modules / path, os.O_RDONLY)
            ctypes.CDLL(None).syscall(FINIT_MODULE, fd, b"", 0)  # one that is in already is no error
            os.close(fd)

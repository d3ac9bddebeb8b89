"""The shell of commands and setups: it fails where a part of what it runs fails.

A job may run in a container with nothing but busybox. So the words find out there which shell they have.
"""

from __future__ import annotations

#: Its options where there is a bash. `--posix`: as `sh`, it reads no file of BASH_ENV, and `$(…)` keeps `-e`.
STRICT_OPTIONS = "--posix -eo pipefail"
#: Not every `sh` has pipefail: dash 0.5.12 has none.
_SCRIPT = f"""\
command -v bash >/dev/null && exec bash {STRICT_OPTIONS} "$@"
(set -o pipefail) 2>/dev/null && exec "$0" -eo pipefail "$@"
case "$*" in *" | "*) echo "monkey: without bash, only the last part of a pipe can fail here" >&2;; esac
exec "$0" -e "$@"
"""
#: Words of it, before "-c", a script and its name.
STRICT_SHELL = ("sh", "-c", _SCRIPT, "sh")
#: Words of it, before a file, where PATH may be anything.
SETUP_SHELL = ("/bin/sh", "-c", _SCRIPT, "/bin/sh")

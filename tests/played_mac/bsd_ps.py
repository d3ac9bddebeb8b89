"""BSD's ps, as macOS has it: it knows the options and columns that are played here, and refuses all others.

From apple-oss-distributions/adv_cmds, ps/ps.c and ps/keyword.c: one letter an option, no `--long` ones; an unknown
column is named, and costs the exit code 1; so does a process that is not there.
"""

from __future__ import annotations

import getopt
import os
import sys

#: Replaced in the copy that runs.
PROC = "/proc"
#: Options of Darwin's getopt string; those that are played here.
KNOWN, PLAYED = "AaCcdEefG:g:hjLlMmO:o:p:rSTt:U:u:vwXx", {"-A", "-a", "-o", "-p", "-x"}
WIDTHS = {"pid": 5, "ppid": 5, "pgid": 5, "state": 4, "stat": 4, "etime": 20}


def fields_of(pid: str) -> list[str]:
    with open(f"{PROC}/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        return file.read().rpartition(")")[2].split()


def describe_age(seconds: int) -> str:
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    clock = f"{minute:02}:{second:02}"
    if days:
        return f"{days:02}-{hour:02}:{clock}"
    return f"{hour:02}:{clock}" if hour else clock


def column(name: str, pid: str, fields: list[str]) -> str:
    with open(f"{PROC}/uptime") as file:  # noqa: PTH123
        up = float(file.read().split()[0])
    state = fields[0].replace("D", "U").replace("t", "T")
    return {
        "pid": pid,
        "ppid": fields[1],
        "pgid": fields[2],
        "state": state,
        "stat": state + ("s" if fields[3] == pid else ""),
        "etime": describe_age(int(up - int(fields[19]) / os.sysconf("SC_CLK_TCK"))),
    }[name]


def main(arguments: list[str]) -> int:
    try:
        options, rest = getopt.getopt(arguments, KNOWN)
    except getopt.GetoptError as exc:
        print(f"ps: illegal option -- {exc.opt}\nusage: ps [-AaCcEefhjlMmrSTvwXx] [-o fmt] [-p pid]", file=sys.stderr)
        return 1
    unknown = {option for option, _ in options} - PLAYED
    if unknown or rest:
        print(f"ps: not played here: {sorted(unknown)} {rest}", file=sys.stderr)
        return 1
    asked = [word for option, value in options if option == "-o" for word in value.replace(",", " ").split()]
    columns = [word.partition("=") for word in asked]
    bad = [name for name, _, _ in columns if name not in WIDTHS]
    for name in bad:
        print(f"ps: {name}: keyword not found", file=sys.stderr)
    columns = [one for one in columns if one[0] in WIDTHS]
    pids = [pid for option, value in options if option == "-p" for pid in value.replace(",", " ").split()]
    headers = [header if sign else name.upper() for name, sign, header in columns]
    if any(headers):
        print(" ".join(headers))
    found = False
    for pid in pids or sorted(filter(str.isdigit, os.listdir(PROC)), key=int):  # noqa: PTH208
        try:
            fields = fields_of(pid)
        except OSError:
            continue
        print(" ".join(column(name, pid, fields).rjust(WIDTHS[name]) for name, _, _ in columns))
        found = True
    return 1 if bad or not found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

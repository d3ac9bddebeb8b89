"""Commands that would make code of a value, and those that only look like it."""

from __future__ import annotations

import pytest

from monkey.spec.command.command import CommandError, JobCommand, compile_command


def compiled(command: str | list[str]) -> JobCommand:
    return compile_command(command, ["x", "y"])


@pytest.mark.parametrize(
    "command",
    [
        "eval {x} | a", 'eval "{x}"; a', "e'v'al 2>&1 {x}", "a; eval 'a;' {x}", "if true; then eval {x}; fi",
        "( eval {x} )", "a $(eval {x})", 'a "$(eval {x})"', "trap {x} EXIT", "let {x} && a", "unset {x}",
        "read {x} < a", "compgen -W {x}; a",
        "[ -v {x} ] && a", "test -v {x} | a", "printf -v {x} a; b", "declare {x}=1; a",
        "bash -c {x} | a", 'bash -c "a {x}" | b', "/bin/sh -euc {x}; a", "bash -o pipefail -c {x} | a",
        "bash {x} | a", "bash -{x} | a",
        "{x} -c {y} | a",
        "ssh host {x} | a", "a 2>&{x}; b", "a >& {x}; b", "[ {x} {y} ] && a", "printf {x} {y}; a", "{x} {y} | a",
        "e{x} {y} | a",
        "command eval {x} | a", "V=1 eval {x}; a", "nohup bash -c {x} &", "readonly {x}; a", "{x} host {y} | a",
 "ssh host {x}", "bash {x}", "bash -{x} a",
        "python -c 'print({x})'", "python3.11 -ISc 'f(\"{x}\")' a", 'python -W ignore -c "print({x})" | a',
        "pypy3 -c{x}",
        "perl -ne 'print {x}'", "ruby -e {x}", "node --eval {x}", "node --eval={x}", "Rscript -e 'f({x})'",
        "php -r {x}",
        "nohup timeout 2h python -c {x}", ["env", "A=1", "python", "-c", "{x}"],
        "awk '$1 == {x}' f", "awk -F, '{{print {x}}}' f", 'awk "/{x}/" f | a', "gawk -F , -e {x} f", "awk -- {x} f",
        "sed s/a/{x}/ f", "sed -n -e {x} f", "sed -i s/a/{x}/ f; a", "timeout 5 sed {x}",
        'X=sh; $X -c "echo {x}"', '"$X" {x}; a', "${{X}} {x}", "$(which sh) -c {x}", "`which sh` -c {x}", "/bin/$X {x}",
        "nohup $X {x}", "X=-c; sh $X {x}",
        "echo {x} | sh", "echo {x}|bash -eu -", "echo {x} | tee a | python", "echo {x} | python3 -",
        "echo {x} | sh -s a",
        "(echo {x}) | sh", "{{ echo {x}; }} | {{ cat; sh; }}", "for i in {x}; do echo $i; done | sh", "echo {x} |\n sh",
        "echo {x} | $SHELL", "echo {x} | xargs -I% sh -c 'echo %'", "echo {x} | ssh host", "echo {x} | . /dev/stdin",
        "a $(echo {x} | sh)", "echo {x} | sudo sh", "echo {x} | nohup perl",
        'X={x}; sh -c "$X"', "X={x}; eval $X", "X={x}; $X", 'X=a{x}; Y="$X"; eval "$Y"', 'export X={x}; eval "${{X}}"',
        'sh -c "$(echo {x})"', "eval $(echo {x})", 'for i in a {x}; do eval "$i"; done', "X={x}; echo $X | sh",
        'X=$(echo {x}); eval "$X"', "env -S {x}", "env -iS 'a {x}'", "env --split-string={x} a", "env A=1 -S {x} | a",
        "su -c {x}", "su - me -c {x}", "su me --command={x}", "sudo su -lc {x}", "runuser -u me -c {x}",
        "script -qc {x} f",
        "flock f -c {x}", "flock -w 10 f -c {x} | a", "/usr/bin/flock f --command {x}", "sbatch --wrap={x}",
        "sbatch --wrap 'a {x}'", "watch {x}", "watch -n 1 a {x}", "watch a b={x} | c", "parallel a {x} ::: 1 2",
        "nohup parallel {x}", ". {x}", "source {x}; a", "a && . {x}/env", "f={x}; . $f", 'f={x}; . "$f" && a',
        'set -- {x}; eval "$1"', 'set -- a {x}; sh -c "$2"', 'set -- {x}; for i in "$@"; do eval "$i"; done',
        "X={x} sh -c 'eval \"$X\"'", "export X={x}; sh -c 'eval \"$X\"'", "env X={x} bash -c 'eval \"$X\"'",
        "X={x} bash -c '[[ $X -eq 1 ]]'", "bash -c 'eval \"$1\"' b {x}", "bash -ec 'a; eval $1 | b' b {x}; c",
        ["bash", "-c", 'eval "$1"', "b", "{x}"], ["env", "X={x}", "sh", "-c", "a && . $X"],
        "bash -c 'sh -c \"$1\"' b {x}", "sh -c 'sh -c \"eval \\$1\" s \"$1\"' b {x}",
        'echo {x} | while read V; do sh -c "$V"; done', "$(echo {x})",
    ],
)  # fmt: skip
def test_commands_that_would_run_a_value_as_code(command: str) -> None:
    with pytest.raises(CommandError) as caught:
        compiled(command)
    assert any(word in caught.value.message for word in ("code", "option of the shell", "a second time"))


@pytest.mark.parametrize(
    "command",
    ["bash train.sh -c {x} | tee log", "bash -- {x} | a", "bash run_{x}.sh | a", "bash -- {x}", "sh -e run.sh {x}",
     "evaluate {x} | a", "a/eval {x} | b", "python -c 'print({{}})' {x}", "sh -c 'a' sh {x} | b",
     "python train.py -c {x}", "python -m a -c {x}", "python -u a.py -e {x} | tee -a log", "perl a.pl -e {x}",
     "awk -v n={x} '{{print n}}' f", "awk -f a.awk {x}", "sed -f a.sed {x}", "sed s/a/b/ {x}", "sed -e s/a/b/ {x} | a",
     "echo sed {x}", "echo {x} | grep sh", "echo {x} | tee sh", "echo {x} | python a.py", "echo {x} | sh a.sh",
     "echo {x} || sh", "sh | a {x}", "echo {x} | xargs -n 1 a", "a {x} | ssh host cat", "a {x} >| b", "$DIR/a {x}",
     "bash $DIR/a.sh {x}", "python $DIR/a.py {x}", "X={x}; a $X", 'X={x} Y="$X" a "$Y"', "a $X {x}", "cd $DIR && a {x}",
     "export A={x}; b", "[ {x} = a ] && b",
     "su me -c 'a \"$1\"' -- {x}", "env -i A=1 a {x}", "env python -S {x}", "env A=1 a -S {x}", "env -u B a {x}",
     "flock f a -c {x}", "flock -n f a {x} | b",
     "script -a {x}", "sbatch a.sh {x}", "watch -x a {x}", "parallel -q a {x} ::: 1", "echo watch {x}", "a --su -c {x}",
     ". ./env.sh; a {x}", ". ./env.sh {x}", ". envs/{x}.sh && a", "set -e; a {x}", 'set -- {x}; a "$1" "$@"',
     "sh -c 'a \"$1\"' sh {x}", "bash -c '. env.sh && a --lr $1' _ {x}", "bash -c 'eval \"$A\"; a $1' _ {x}",
     "X={x} sh -c 'a \"$X\"'", "X={x} bash -c '[[ $X = 1 ]] && a'", "X={x} sh -c 'eval b; a $X'",
     ["bash", "-c", "for i in $@; do a $i; done", "b", "{x}"], "bash -c 'case $1 in a) b;; esac' _ {x}",
     "./{x} | b", "echo eval {x} | b",
     "for i in eval {x}; do echo $i; done", "python{x} a | b", "a 2>&1 {x}", "a &> {x}", "printf '%s' {x} | a"],
)  # fmt: skip
def test_commands_that_look_like_it(command: str | list[str]) -> None:
    assert compiled(command).uses == {"x"}


def test_a_value_cannot_choose_a_shell_for_another() -> None:
    command = compiled(["{x}", "-c", "{y}"])
    assert command.render({"x": "head", "y": "1"}).argv == ["head", "-c", "1"]
    with pytest.raises(CommandError, match="as code"):
        command.render({"x": "/bin/bash", "y": "touch owned"})
    with pytest.raises(CommandError, match="as code"):
        command.render({"x": "python3", "y": "1"})

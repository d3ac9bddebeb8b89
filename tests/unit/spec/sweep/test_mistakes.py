"""What is wrong with a spec: each mistake with its place, what was expected and found, and the fix."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.sweep.load import parse_spec
from tests.unit.spec.making import jobs, problem, problems


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    found = problems(
        """\
        name: my sweep
        command: python train.py --lr {lrr} --x {x}
        parameters:
          lr: {values: 3}
          x: [1, 2]
          momentum: {min: 1, max: 0}
        zip: [[lr, y]]
        max_retrys: 2
        timeout: soon
        resources: {cpus: 1, memory: 2G}
        sobol: 1
        """
    )
    assert [(p.line, p.column, p.message) for p in found] == [
        (1, 7, "expected a name, found the text 'my sweep'"),
        (2, 31, "unknown parameter 'lrr'"),
        (4, 16, "expected a list of values, found 3"),
        (6, 27, "expected min < max, found 1 and 0"),
        (7, 12, "unknown parameter 'y'"),
        (8, 1, "unknown key 'max_retrys'"),
        (9, 10, "expected a duration, found the text 'soon'"),
        (10, 30, "expected a size, found the text '2G'"),
        (11, 1, "unknown key 'sobol'"),
    ]


def test_a_problem_shows_the_line_a_caret_and_the_fix() -> None:
    assert str(problem("command: train --lr {lrr}\nparameters: {lr: [1]}")) == "\n".join(
        [
            "specs/it.yaml:1:21: unknown parameter 'lrr'",
            "  command: train --lr {lrr}",
            "                      ^",
            "  hint: did you mean 'lr'?",
        ]
    )


def test_a_caret_stands_right_after_tabs_and_quotes_and_in_blocks() -> None:
    assert problem('command: "a {b}"').column == 13
    tabbed = problem('command: "a\t\t{b}"')
    assert (tabbed.column, tabbed.source) == (14, 'command: "a  {b}"')
    found = problem("command: |\n  cd x\n  a {b} | c\n")
    assert (found.line, found.column, found.source) == (3, 5, "  a {b} | c")
    assert problem("command: >\n  a\n  {b}\n").line == 1  # folded: the text is not the file's


@pytest.mark.parametrize(
    "text, where, message, hint",
    [
        ("name: 123", (1, 7), "expected a name, found 123", 'write it in quotes: "123"'),
        ("name: 1.5", (1, 7), "expected a name, found 1.5", 'write it in quotes: "1.5"'),
        ("name: yes and no", (1, 7), "expected a name, found the text", "use letters"),
        ("name: a", (1, 1), "'command' is missing", "command: python train.py"),
        ("command: ''", (1, 10), "expected a command, found nothing", "program"),
        ("command: []", (1, 10), "expected a command, found an empty list", "list of words"),
        ("command: 3", (1, 10), "expected a command, found 3", "one line"),
        ("command: [sleep, 0.5]", (1, 18), "expected a word of the command, found 0.5", "quotes"),
        ("command: [a, '{b}']", (1, 15), "unknown parameter 'b'", "no parameters"),
        ("command: 'a {b.c}'\ndatasets: {b.c: .}", (1, 13), "unknown parameter 'b.c'", "$MONKEY_DATASET_B_C"),
        ("method: gird", (1, 9), "expected grid or random, found the text 'gird'", "did you mean 'grid'?"),
        ("method: sobol", (1, 9), "method 'sobol' is not there yet", "method: random"),
        ("method: random", (1, 9), "method: random needs a run_cap", "run_cap: 100"),
        ("datasets: [data]", (1, 11), "expected a mapping of names to paths, found a list", "{digits: data/digits}"),
        ("datasets: {a b: .}", (1, 12), "'a b' cannot name a dataset", "letters"),
        ("datasets: {a-b: ., a.b: .}", (1, 20), "'a.b' and 'a-b' would both be found in MONKEY_DATASET_A_B", "another"),
        ("datasets: {a: 3}", (1, 15), "expected a path, found 3", "path: data/digits"),
        ("datasets: {a: {}}", (1, 15), "a dataset needs a path", "path: data/digits"),
        ("datasets: {a: {root: .}}", (1, 16), "unknown key 'root'", "a dataset has a path"),
        ("datasets: {a: ~/data}", (1, 15), "another one for everybody", "in full"),
        ("image: python:3", (1, 1), "unknown key 'image'", "did you mean 'environment'?"),
        ("secrets: {A: hunter2}", (1, 10), "expected a list of names, found a mapping", "[WANDB_API_KEY]"),
        ("secrets: [A, x=hunter2]", (1, 14), "expected the name of an environment variable", "never in a spec"),
        ("secrets: [A, PATH]", (1, 14), "'PATH' is no secret", "take it out"),
        ("secrets: [A, B, A]", (1, 17), "'A' is listed twice", "once"),
        ("secrets: [A]\nenv: {A: hunter2}", (2, 7), "'A' is one of the secrets", "remove it from env"),
        ("environment: {image: python}", (1, 22), "expected an image with a tag or a digest", "python:TAG"),
        ("environment: {image: 'Python:3'}", (1, 22), "expected the name of an image", "python:3.12"),
        ("environment: {image: '-v:3'}", (1, 22), "expected the name of an image", "python:3.12"),
        ("environment: {image: [a]}", (1, 22), "expected the name of an image, found a list", "python:3.12"),
        ("environment: {image: 'a:1', python: '3.12'}", (1, 29), "an image brings its own Python", "remove it"),
        ("setup: make", (1, 1), "unknown key 'setup'", ""),
        ("environment: {setup: ' '}", (1, 22), "expected lines of shell", "setup: |"),
        ("environment: {setup: [make]}", (1, 22), "expected lines of shell, found a list", "setup: |"),
        ("environment: {requirements: []}", (1, 29), "expected a file or a list of requirements", "[numpy"),
        ("environment: {requirements: [numpy, 3]}", (1, 37), "expected a requirement, found 3", "numpy==2.3.4"),
        ("environment: {requirements: [numpy, -e .]}", (1, 37), "-e refers to another file", "list the packages"),
        ("metric: {name: a, target: 1}", (1, 19), "'target' is not there yet", "goal"),
        ("metric: acc", (1, 9), "expected a mapping, found a name", "{name: acc, goal: maximize}"),
        ("metric: {name: a, goal: max}", (1, 25), "expected minimize or maximize", "'maximize'"),
        ("metric: {name: a, take: first}", (1, 25), "expected last or best", ""),
        ("metric: {goal: maximize}", (1, 9), "'name' is missing", "name:"),
        ("program: a.py", (1, 1), "unknown key 'program'", "did you mean 'command'?"),
        ("max_retrys: 1", (1, 1), "unknown key 'max_retrys'", "did you mean 'max_retries'?"),
        ("resources: {cpu: 1}", (1, 13), "unknown key 'cpu'", "did you mean 'cpus'?"),
        ("resources: {GPU: 1}", (1, 13), "unknown key 'GPU'", "did you mean 'gpus'?"),
        ("resources: {memroy: 2GiB}", (1, 21), "expected a whole number from 0 to 1,000,000", "did you mean 'memory'?"),
        ("resources: {tpu: 0.5}", (1, 18), "expected a whole number from 0 to 1,000,000, found 0.5", "write tpu: 1"),
        ("resources: {tpu: true}", (1, 18), "expected a whole number", "write tpu: 1"),
        ("resources: {a b: 1}", (1, 13), "'a b' cannot name a resource", "63 of them at most"),
        ("resources: {cpus: 0}", (1, 19), "expected more than 0, found 0", ""),
        ("resources: {gpus: 1.5}", (1, 19), "expected whole GPUs, or less than one, found 1.5", "write 1 or 2, or 0.5"),
        ("resources: {gpus: 0.3333}", (1, 19), "three decimals at most, found 0.3333", "0.333: then 3 jobs share"),
        ("resources: {gpus: 0.00001}", (1, 19), "three decimals at most, found 1e-05", "write 0.001"),
        ("resources: {gpus: -1}", (1, 19), "expected a number of GPUs, found -1", "a part of one: 0.5"),
        ("resources: {gpus: a100}", (1, 19), "expected a number of GPUs, found", "a part of one: 0.5"),
        ("resources: {gpus: true}", (1, 19), "expected a number of GPUs, found true", "a part of one: 0.5"),
        ("max_retries: '2'", (1, 14), "expected a whole number, found the text '2'", "write 2 without quotes"),
        ("max_retries: yes", (1, 14), "expected a whole number, found the text 'yes'", "write a whole number, such as"),
        ("max_retries: true", (1, 14), "expected a whole number, found true", "write a whole number, such as 2"),
        ("max_retries: 2.5", (1, 14), "expected a whole number, found 2.5", "write a whole number, such as 2"),
        ("resources: {cpus: true}", (1, 19), "expected a number, found true", "write a number, such as 2 or 0.5"),
        ("resources: {cpus: '0.5'}", (1, 19), "expected a number, found the text '0.5'", "write 0.5 without quotes"),
        ("max_retries: -1", (1, 14), "expected 0 or more, found -1", ""),
        ("fail_fast: yes", (1, 12), "expected true or false, found the text 'yes'", "write true, without quotes"),
        ("fail_fast: 'False'", (1, 12), "expected true or false, found the text 'False'", "write false, without"),
        ("fail_fast: 0", (1, 12), "expected true or false, found 0", "write false, without quotes"),
        ("fail_fast: soon", (1, 12), "expected true or false, found the text 'soon'", "write true or false"),
        ("run_cap: 100000000", (1, 10), "expected at most 5000000", ""),
        ("timeout: 0", (1, 10), "expected a duration, found 0", '"2h"'),
        ("grace: 0s", (1, 8), "expected a duration, found the text '0s'", "more than 0"),
        ("env: {1A: b}", (1, 7), "'1A' cannot name an environment variable", "letters"),
        ("env: {MONKEY_A: b}", (1, 7), "MONKEY_", "another name"),
        ("env: {A: 0.1}", (1, 10), "expected text, found 0.1", "quotes"),
        ("parameters: {lr: [1]}\nenv: {A: 'x{lr}'}", (2, 10), "{lr} is filled in only in the command", "MONKEY_PARAMS"),
        ("parameters: {lr: [1]}\noutputs: ['{lr}']", (2, 11), "{lr} is filled in only in the command", "MONKEY_PARAMS"),
        ("outputs: [/tmp/a]", (1, 11), "expected a file below the working directory", "relative"),
        ("outputs: [../a]", (1, 11), "expected a file below the working directory", "relative"),
        ("outputs: 3", (1, 10), "expected a list of files, found 3", "model.npz"),
        ("provider: []", (1, 11), "expected a provider's name", "local"),
        ("provider: [a, a]", (1, 15), "listed twice", "once"),
        ("environment: {python: 3.11}", (1, 23), "expected a version in quotes, found 3.11", '"3.11"'),
        ("environment: {python: 3.10}", (1, 23), "expected a version in quotes, found 3.1", '"3.10"'),
        ("environment: {python: 3.12}", (1, 23), "expected a version in quotes, found 3.12", '"3.12"'),
        ("environment: {python: '2.7'}", (1, 23), "expected a version such as '3.11'", '"3.11"'),
        ("environment: {requirements: nowhere.txt}", (1, 29), "cannot be read: No such file", "path"),
        ("environment: {requirements: /dev/zero}", (1, 29), "outside of the project", "path"),
        ("environment: {requirements: ../x}", (1, 29), "outside of the project", "path"),
        ("environment: {requirements: .}", (1, 29), "Is a directory", "path"),
        ("code: {root: nowhere}", (1, 14), "there is no directory 'nowhere'", "root: ."),
        ("code: {root: ..}", (1, 14), "there is no directory '..' in the project", "root: ."),
        ("zip: [[a]]", (1, 8), "unknown parameter 'a'", "no parameters"),
        ("parameters: {a: [1, 2], b: [1]}\nzip: [[a, b]]", (2, 7), "a has 2, b has 1", "equally many"),
        ("parameters: {a: [1], b: [1], c: [1]}\nzip: [[a, b], [b, c]]", (2, 16), "'b' is zipped twice", "once"),
        ("parameters: {a: [1], b: [1]}\nzip: [a, b]", (2, 6), "expected a list of lists of names", "[[a, b]]"),
        ("parameters: {lr: [1, 2]}\nexclude: [{lr: 3}]", (2, 16), "3 is not a value of 'lr'", "remove the row"),
        ("parameters: {lr: [1, 2]}\nexclude: [{rl: 1}]", (2, 12), "unknown parameter 'rl'", "'lr'"),
        ("parameters: {lr: [1, 2]}\nexclude: [{}]", (2, 11), "an empty row in exclude", "at least one"),
        ("parameters: {a: [1, 2], b: [1, 2]}\ninclude: [{a: 3}]", (2, 11), "this one lacks b", "add b"),
        ("parameters: {a: [1]}\ninclude: [3]", (2, 11), "expected a mapping, found 3", ""),
        ("parameters: [lr]", (1, 13), "expected a mapping of names to values, found a list", "lr: [0.1"),
        ("parameters: {lr: [1], 2: [3]}", (1, 23), "expected text as key, found 2", "quotes"),
        ("priority: 1e9", (1, 11), "expected a whole number, found 1000000000.0", ""),
        ("- a", (1, 1), "expected a mapping, found a list", "key: value"),
        ("a\n", (1, 1), "expected a mapping, found the text 'a'", "key: value"),
    ],
)  # fmt: skip
def test_mistakes(text: str, where: tuple[int, int], message: str, hint: str, tmp_path: Path) -> None:
    text = text if "command" in text or text in ("name: a", "- a", "a\n") else f"{text}\ncommand: 'true'\n"
    with pytest.raises(SpecError) as caught:
        parse_spec(text, "it.yaml", tmp_path)
    (found,) = caught.value.problems
    assert message in found.message
    assert hint in (found.hint or "")
    assert (found.line, found.column) == where
    assert found.source == text.splitlines()[found.line - 1]


def test_a_mistake_in_one_parameter_does_not_make_others_unknown() -> None:
    parameters = "{lr: {mim: 1}, o: {parameters: 3}, b-c: [1]}"
    found = problems(f"command: a {{lr}} {{o.x}} {{b-c}}\nparameters: {parameters}\nzip: [[lr, o.x]]")
    assert [p.line for p in found] == [2, 2, 2]


def test_a_mistake_in_a_field_hides_no_other_of_it(tmp_path: Path) -> None:
    text = """\
        command: [run, 0.5, '{x}']
        parameters: {a: [1, 2]}
        environment: {python: 3.11, requirements: nowhere.txt}
        env: {1A: b, B: '{a}'}
        include: [3, {b: 1}]
        exclude: [{a: 1}, 4, {a: 7}]
        code: {root: nowhere, include: 3}
        metric: {goal: max}
        provider: [local, l/l]
        """
    found = problems(text, tmp_path)
    assert [(p.line, p.column) for p in found] == [
        (1, 16), (1, 22), (3, 23), (3, 43), (4, 7), (4, 17), (5, 11), (5, 15), (6, 19), (6, 26), (7, 14), (7, 32),
        (8, 9), (8, 16), (9, 19),
    ]  # fmt: skip


def test_a_run_cap_that_is_wrong_is_not_lacking_as_well() -> None:
    assert problem("method: random\nrun_cap: 1000000000000").message.startswith("expected at most 5000000")


def test_several_mistakes_in_one_command() -> None:
    assert [p.column for p in problems("command: a {b} {c} '{d}'")] == [12, 16, 21]
    assert [p.column for p in problems("command: [a, '{b}', '{c}{d}']")] == [15, 22, 25]
    found = problems("command: a {b} | c {d} '{lr}'\nparameters: {lr: [1]}")
    assert [p.message for p in found][2:] == ["a parameter inside single quotes"]


@pytest.mark.parametrize("count", [10, 300])
def test_too_many_jobs_are_refused_without_making_one(count: int) -> None:
    text = "parameters:\n" + "".join(f"  p{n}: {{range: [0, 1000]}}\n" for n in range(count)) + "command: 'true'\n"
    begin = time.process_time()
    found = problem(text)
    # Reading so long a file takes its time, too.
    assert time.process_time() - begin < (0.2 if count == 10 else 2)
    assert found.message.startswith("expected at most 5,000,000 jobs, found more than 10^18 (p0 1,000 × ")
    assert (found.line, found.column) == (1, 1)


def test_how_many_jobs_is_said() -> None:
    message = problem("parameters: {a: {range: [0, 1000000]}, b: {range: [0, 1000000]}}").message
    assert message == "expected at most 5,000,000 jobs, found 1,000,000,000,000 (a 1,000,000 × b 1,000,000)"
    assert "10^18" in problem(f"parameters: {{a: {{range: [0, {10**40}]}}}}").message


def test_a_spec_of_combinations_alone_is_shown_how_to_list_them() -> None:
    text = "command: 'a'\ninclude: [{a: 1, b: 2}, {a: 3, b: 4}]\n"
    found = problem(text)
    assert (found.line, found.column, found.message) == (2, 1, "include adds to a matrix, and there are no parameters")
    assert found.hint == "list values in the same order: parameters: {a: […], b: […]} and zip: [[a, b]]"
    listed = "parameters: {a: [1, 3], b: [2, 4]}\nzip: [[a, b]]\ncommand: 'a'"
    assert jobs(listed) == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    alone = problem("command: 'a'\ninclude: [{a: 1}, {a: x}]\n")
    assert alone.hint == "list values in the same order: parameters: {a: […]}"

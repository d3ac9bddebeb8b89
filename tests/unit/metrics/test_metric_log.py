"""monkey.log in processes of its own: what it writes, and that it harms none of them."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from monkey.metrics.summary import MetricSummary


def run(code: str, directory: Path | str | None, **options: Any) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "MONKEY_METRICS_DIR"}
    if directory is not None:
        env["MONKEY_METRICS_DIR"] = str(directory)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", "import monkey\n" + textwrap.dedent(code)],
        env=env, capture_output=True, text=True, timeout=30, check=False, **options,
    )  # fmt: skip


def records(directory: Path) -> list[dict[str, Any]]:
    lines = [line for path in sorted(directory.iterdir()) for line in path.read_bytes().splitlines() if line]
    return [json.loads(line, parse_constant=pytest.fail) for line in lines]


def logged(directory: Path, code: str) -> list[tuple[dict[str, Any], int | None]]:
    done = run(code, directory)
    assert (done.returncode, done.stderr) == (0, "")
    return [(record["m"], record["step"]) for record in records(directory)]


def test_one_metric_and_several(tmp_path: Path) -> None:
    code = """
    monkey.log("loss", 0.3, step=10)
    monkey.log("loss", 0.25, step=11)
    monkey.log("loss", 0.2)
    monkey.log({"loss": 0.1, "acc": 1}, step=12)
    """
    assert logged(tmp_path, code) == [
        ({"loss": 0.3}, 10),
        ({"loss": 0.25}, 11),
        ({"loss": 0.2}, None),
        ({"loss": 0.1, "acc": 1.0}, 12),
    ]


def test_the_time_is_in_seconds_since_the_epoch(tmp_path: Path) -> None:
    logged(tmp_path, "monkey.log('loss', 1.0); monkey.log('loss', 1.0)")
    one, two = (record["t"] for record in records(tmp_path))
    assert 1.7e9 < one <= two < 4e9


def test_numbers_come_back_exactly_each_way(tmp_path: Path) -> None:
    values = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, 3.0, 1e22, -1e-7 / 3, 123456789012345.0]
    values += [0, -7, 2**53 + 1, -(10**400), 10**4000]
    code = f"""
    for v in {values}:
        monkey.log("x", v, step=1); monkey.log("x", v); monkey.log({{"x": v, "y": v}}, step=1)
    """
    found = [value for m, _ in logged(tmp_path, code) for value in m.values()]
    assert list(map(repr, found)) == [repr(v) for v in values for _ in range(4)]


def test_whole_numbers_that_python_does_not_print_are_infinite(tmp_path: Path) -> None:
    code = "for v in (1, 10**5000, -10**5000): monkey.log('x', v, step=1)"
    assert [m["x"] for m, _ in logged(tmp_path, code)] == [1, "inf", "-inf"]


def test_names_are_never_formats(tmp_path: Path) -> None:
    code = """
    for _ in range(3):
        monkey.log("100%d %s", 0.5, step=1); monkey.log({'a"%%': 0.5, "{b}": 1}, step=2)
    """
    assert logged(tmp_path, code) == [({"100%d %s": 0.5}, 1), ({'a"%%': 0.5, "{b}": 1.0}, 2)] * 3


def test_a_dict_of_the_same_names_is_checked_each_time(tmp_path: Path) -> None:
    code = """
    for v in (0.5, 1, float("nan"), True, 10**400, 0.25): monkey.log({"a": v, "b": 2.0}, step=1)
    """
    assert [m["a"] for m, _ in logged(tmp_path, code)] == [0.5, 1, "nan", 1, 10**400, 0.25]


def test_what_is_not_finite_is_valid_json_and_counted_by_the_summary(tmp_path: Path) -> None:
    code = "for v in [float('nan'), float('inf'), -float('inf'), 10**5000, 0.5]: monkey.log('loss', v, step=1)"
    assert [m["loss"] for m, _ in logged(tmp_path, code)] == ["nan", "inf", "-inf", "inf", 0.5]
    summary = MetricSummary()
    for path in tmp_path.iterdir():
        summary.feed(path.read_bytes())
    assert (summary.finish()["loss"]["nonfinite"], summary.garbage) == (4, 0)


def test_scalars_of_array_libraries_are_numbers(tmp_path: Path) -> None:
    code = """
    import warnings
    class Tensor:  # as torch's: warns when it becomes a number while it requires gradients
        def __init__(self, value, grad=True): self.value, self.grad = value, grad
        def detach(self): return Tensor(self.value, False)
        def item(self): return self.value
        def __float__(self):
            if self.grad: warnings.warn("converting")
            return self.value
    class Float64(float):  # as numpy's: a float whose repr is not JSON
        def __repr__(self): return f"np.float64({float(self)})"
    class Int(int):
        def item(self): return int(self)
    monkey.log("a", Tensor(0.5), step=Int(3))
    monkey.log("a", Float64(0.25), step=Tensor(4))
    monkey.log("a", True, step=5.0)
    """
    assert logged(tmp_path, code) == [({"a": 0.5}, 3), ({"a": 0.25}, 4), ({"a": 1.0}, 5)]


@pytest.mark.parametrize(
    ("call", "word"),
    [
        ("monkey.log('loss', 'high')", "'loss' must be a number, not str 'high'"),
        ("monkey.log('loss', '1.5')", "'loss' must be a number, not str '1.5'"),
        ("monkey.log('loss', None)", "must be a number"),
        ("monkey.log('loss', [1, 2])", "must be a number, not list"),
        ("monkey.log('loss')", "must be a number, not NoneType"),
        ("monkey.log('', 1.0)", "a name must be"),
        ("monkey.log('a\\nb', 1.0)", "a name must be"),
        ("monkey.log('x' * 201, 1.0)", "a name must be"),
        ("monkey.log(3, 1.0)", "a name must be"),
        ("monkey.log([], 1.0)", "unhashable"),
        ("monkey.log({3: 1.0})", "a name must be"),
    ],
)
def test_what_cannot_be_recorded_is_said_once_and_the_job_goes_on(tmp_path: Path, call: str, word: str) -> None:
    done = run(f"for _ in range(9): {call}\nmonkey.log('acc', 1.0)", tmp_path)
    assert done.returncode == 0 and word in done.stderr
    assert done.stderr.count("monkey.log: ") == 1 + ("records lost: 9" in done.stderr)
    assert [record["m"] for record in records(tmp_path)] == [{"acc": 1.0}]


@pytest.mark.parametrize("step", ["0.5", "'3'", "float('nan')", "[]"])
def test_a_step_that_is_none_costs_the_step_alone(tmp_path: Path, step: str) -> None:
    done = run(f"monkey.log('a', 1.0)\nmonkey.log('a', 1.0, step={step})", tmp_path)
    assert "step must be an integer" in done.stderr
    assert [record["step"] for record in records(tmp_path)] == [None, None]


def test_the_good_metrics_of_a_record_are_kept(tmp_path: Path) -> None:
    run("monkey.log({'loss': 0.5, 'note': 'x', 'acc': 1.0}, step=1)", tmp_path)
    assert [record["m"] for record in records(tmp_path)] == [{"loss": 0.5, "acc": 1.0}]


def test_mistakes_without_end_do_not_fill_the_log(tmp_path: Path) -> None:
    done = run("for i in range(1000): monkey.log(f'n{i}', 'x')", tmp_path)
    assert done.stderr.count("\n") == 20


def test_outside_of_a_job_it_says_so_once_and_leaves_nothing(tmp_path: Path) -> None:
    done = run("for i in range(100): monkey.log('loss', 1.0, step=i); monkey.log({'a': 1})", None, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr.count("\n") == 1 and "not in a job" in done.stderr
    assert done.stdout == "" and not list(tmp_path.iterdir())


def test_a_thousand_names_are_all_kept(tmp_path: Path) -> None:
    code = """
    for step in (1, 2):
        for i in range(500): monkey.log(f"layer{i}/norm", i / 7, step=step)
        monkey.log({f"layer{i}/norm": i / 7 for i in range(500, 1000)}, step=step)
    """
    assert run(code, tmp_path).stderr == ""
    summary = MetricSummary()
    for path in tmp_path.iterdir():
        summary.feed(path.read_bytes())
    told = summary.finish()
    assert {name: (of["last"], of["step"], of["count"]) for name, of in told.items()} == {
        f"layer{i}/norm": (i / 7, 2, 2) for i in range(1000)
    }
    assert summary.garbage == 0


def test_a_directory_that_cannot_be_made_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("for i in range(100): monkey.log('loss', 1.0)", tmp_path / "file" / "metrics")
    assert done.returncode == 0 and done.stderr.count("\n") == 1 and "not recorded" in done.stderr


def test_a_closed_stderr_harms_nothing(tmp_path: Path) -> None:
    done = run("import sys; sys.stderr.close(); monkey.log('loss', 'x'); monkey.log('loss', 1.0)", tmp_path)
    assert done.returncode == 0 and len(records(tmp_path)) == 1


def test_a_forked_child_has_a_file_of_its_own(tmp_path: Path) -> None:
    code = """
    import os
    monkey.log("loss", 0.0, step=0)
    child = os.fork()
    for i in range(200): monkey.log("child" if child == 0 else "parent", float(i), step=i)
    if child == 0: os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    """
    assert len(logged(tmp_path, code)) == 401
    names = [{next(iter(json.loads(line)["m"])) for line in p.read_text().splitlines()} for p in tmp_path.iterdir()]
    assert sorted(map(sorted, names)) == [["child"], ["loss", "parent"]]


def test_threads_lose_and_mix_nothing(tmp_path: Path) -> None:
    code = """
    import threading
    def work(n):
        for i in range(2000): monkey.log(f"t{n}", i / 3, step=i)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    """
    assert len(logged(tmp_path, code)) == 8000


def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    done = run("for i in range(500): monkey.log('loss', 1.0, step=i)\nimport os; os.kill(os.getpid(), 9)", tmp_path)
    assert done.returncode == -9
    assert len(records(tmp_path)) == 500


def test_a_full_disk_tears_no_later_record_and_is_counted(tmp_path: Path) -> None:
    # A limit on the file's size stands for the disk: it too lets a write end in the middle of a record.
    code = """
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    monkey.log("loss", 0.5, step=1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    for i in range(50): monkey.log("loss", 0.5, step=2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    monkey.log("loss", 0.25, step=3)
    monkey.log("loss", 0.125, step=4)
    """
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = run(code, tmp_path)
    assert done.returncode == 0
    assert "a record is lost" in done.stderr and "records lost: 50" in done.stderr and done.stderr.count("\n") == 2
    summary = MetricSummary()
    summary.feed(next(tmp_path.iterdir()).read_bytes())
    entry = summary.finish()["loss"]
    assert (entry["count"], entry["last"], summary.garbage) == (3, 0.125, 1)


def test_a_truly_full_device_harms_nothing(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    code = """
    import os
    monkey.log("loss", 1.0)
    for fd in range(3, 20):
        try: name = os.readlink(f"/proc/self/fd/{fd}")
        except OSError: continue
        if name.endswith(".jsonl"): os.dup2(os.open("/dev/full", os.O_WRONLY), fd)
    for _ in range(3): monkey.log("loss", 2.0)
    """
    done = run(code, tmp_path)
    assert done.returncode == 0 and os.strerror(errno.ENOSPC) in done.stderr and "records lost: 3" in done.stderr


def test_a_process_that_closes_all_its_files_logs_on(tmp_path: Path) -> None:
    code = "import os\nmonkey.log('a', 1.0)\nos.closerange(3, 256)\nmonkey.log('a', 2.0)\nmonkey.log('a', 3.0)"
    assert sorted(m["a"] for m, _ in logged(tmp_path, code)) == [1.0, 2.0, 3.0]


def test_names_without_end_do_not_grow_the_process(tmp_path: Path) -> None:
    code = """
    from monkey.metrics import metric_log as log
    for i in range(3000): monkey.log(f"n{i}", 1.0); monkey.log({f"n{i}": 1.0, "m": 2.0})
    print(len(log._stepped), len(log._plain), len(log._joint))
    """
    assert run(code, tmp_path).stdout == "1000 1000 1000\n"

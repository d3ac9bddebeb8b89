"""Scripts that bash would run, and sh does not."""

from __future__ import annotations

import pytest

from monkey.spec.command.shell_advice import suggest_activation


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("source venv/bin/activate && python x.py", "write `. venv/bin/activate`"),
        ("cd sub; source ../venv/bin/activate\npython x.py", "write `. ../venv/bin/activate`"),
        ("conda activate ml && python x.py", "write `conda run -n ml python …`"),
        ("mamba activate && python x.py", "write `mamba run -n NAME python …`"),
        ("conda activate -n ml; python x.py", "write `conda run -n ml python …`"),
        ("source activate ml && python x.py", "write `conda run -n ml python …`"),
        ("source v/bin/activate; python x.py", "write `. v/bin/activate`"),
        ("if [ -d v ]; then source v/bin/activate && python x.py; fi", "write `. v/bin/activate`"),
        ("{{ source v/bin/activate && python x.py; }}", "write `. v/bin/activate`"),
        ("(source v/bin/activate) || exit 1", "write `. v/bin/activate`"),
        ("cd {dir} || exit 1; source v/bin/activate || exit 1; python x.py", "write `. v/bin/activate`"),
        ("for i in 1 2; do conda activate ml && python x.py; done", "write `conda run -n ml python …`"),
        ("if ! [ -d v ]\nthen\n  python -m venv v\nelse\n  source v/bin/activate\nfi", "write `. v/bin/activate`"),
    ],
)
def test_what_to_write_instead_is_told(command: str, advice: str) -> None:
    assert advice in (suggest_activation(command) or "")


@pytest.mark.parametrize(
    "command",
    [
        ". venv/bin/activate && python x.py",
        "python train.py --source data --conda activate",
        "echo source of truth",
        'echo "then; source code {a}" | cat',
        "python t.py # use; source x",
        "cat <<E\nsource foo\nE",
        "source <(curl x) && y",
        "echo then source code",
        "python x.py {source} && y",
        "git log -- {{ source x",
        ". /opt/conda/etc/profile.d/conda.sh && conda activate ml && python x.py",
        'eval "$(conda shell.posix hook)" && conda activate ml && python x.py',
        "conda run -n ml python x.py",
        ["bash", "-c", "source venv/bin/activate"],
    ],
)
def test_other_commands_get_none(command: str | list[str]) -> None:
    assert suggest_activation(command) is None

"""A credential that somebody wrote into a spec, or a job into its log, is shown by no verb, whatever its kind."""

from __future__ import annotations

import json

from tests.acceptance.shop import Shop
from tests.credential_samples import END, GITLEAKS, HEX, OTHERS, letters

TOKENS = [*(token for _, token in (GITLEAKS | OTHERS).values()), f"postgres://ann:s/{letters(20)}@db"]
#: Only their name gives them away.
KEYS = letters(40, HEX), letters(40, HEX)


def write_spec(shop: Shop, env: dict[str, str], *words: str) -> None:
    spec = {
        "name": "sweep",
        "command": ["python3", "train.py", "{hub}", *words],
        "parameters": {"hub": TOKENS[:2]},
        "env": env,
        "max_retries": 0,
    }
    (shop.root / "specs").mkdir(exist_ok=True)
    (shop.root / "specs/sweep.yaml").write_text(json.dumps(spec))


def test_no_verb_shows_a_credential(shop: Shop) -> None:
    last = f"bad: {TOKENS[0]} WANDB_API_KEY={KEYS[0]} {TOKENS[-1]}"
    (shop.root / "train.py").write_text(f"print({TOKENS!r}, sep='\\n')\nraise SystemExit({last!r})\n")
    env = {f"V{at}": token for at, token in enumerate(TOKENS)}
    write_spec(shop, env | {"WANDB_API_KEY": KEYS[0]}, *TOKENS[:9])
    first = shop.run("apply", code=1)
    jobs = [job["job"] for job in shop.json("list", "jobs", "sweep")]
    env = {f"V{at}": token for at, token in enumerate(reversed(TOKENS))}
    write_spec(shop, env | {"WANDB_API_KEY": KEYS[1]}, *TOKENS[5:9])
    said = [first, *(shop.run("plan", *words) for words in (["--all"], ["--markdown", "--all"], ["--json", "--all"]))]
    said += [shop.run("info", *words) for words in (["sweep"], [jobs[0]], ["sweep", "--json"], [jobs[0], "--json"])]
    said += [
        shop.run("list", "jobs", "sweep", "--json"),
        shop.run("list", "sweeps", "--json"),
        shop.run("status", "--json"),
    ]
    said += [shop.run("list", "jobs", "sweep"), shop.run("status"), shop.run("results", "sweep", "--all")]
    said.append(shop.run("status", "--json"))
    said.append(shop.run("apply", code=1))
    sides = "sweep@1", "sweep@2"
    said += [shop.run("diff", *sides, code=2), shop.run("diff", *sides, "--json", code=2), shop.run("history", "sweep")]
    for done in said:
        text = done.stdout + done.stderr
        assert text and [token for token in (*TOKENS, *KEYS) if token.rstrip("=")[-END:] in text] == [], done.args

"""Shell of CI's jobs, for all forges; what these are given comes by variables alone."""

from __future__ import annotations

from collections.abc import Sequence

#: The label of pull requests that are previewed.
PREVIEW_LABEL = "monkey-preview"

#: The environment is outside of the checkout: nothing of it can be taken for code.
INSTALL = """\
[ -n "$MONKEY_PACKAGE" ] || { echo "set the variable MONKEY_PACKAGE: what pip is to install"; exit 1; }
python -m venv "$RUNNER_TEMP/venv"
"$RUNNER_TEMP/venv/bin/pip" install --quiet "$MONKEY_PACKAGE"
echo "$RUNNER_TEMP/venv/bin" >> "$GITHUB_PATH\""""

#: Before the runner has a key of its own, which needs no such trust, and may be among these.
TRUST = """\
while read -r key; do
  [ -z "$key" ] || monkey trust "$key"
done <<< "$SIGNERS\""""

SIGNING_KEY = """\
[ -n "$SIGNING_KEY" ] || { echo "set the secret MONKEY_SIGNING_KEY: the key that signs what is applied"; exit 1; }
umask 077
printf '%s\\n' "$SIGNING_KEY" > "$RUNNER_TEMP/signing_key"
echo "MONKEY_SIGNING_KEY=$RUNNER_TEMP/signing_key" >> "$GITHUB_ENV\""""


def _spell_ssh_config(directory: str) -> str:
    """Return the lines that name a job's own key and hosts: a runner that stays may have a user, whose are not ours."""
    return f"""\
cat > "{directory}/ssh_config" <<END
IdentityFile "{directory}/ssh_key"
UserKnownHostsFile "{directory}/ssh_hosts" ~/.ssh/known_hosts
Include ~/.ssh/config
END"""


SSH_KEY = f"""\
umask 077
printf '%s\\n' "$KEY" > "$RUNNER_TEMP/ssh_key"
printf '%s\\n' "$HOSTS" > "$RUNNER_TEMP/ssh_hosts"
{_spell_ssh_config("$RUNNER_TEMP")}
echo "MONKEY_SSH_CONFIG=$RUNNER_TEMP/ssh_config" >> "$GITHUB_ENV\""""

#: For GitLab, which hands the key over as a file: some ways to store it drop the newline at its end, which ssh needs.
SSH_KEY_FILE = f"""\
(umask 077; {{ cat "$MONKEY_SSH_KEY"; echo; }} > "$MONKEY_TEMP/ssh_key")
printf '%s\\n' "$MONKEY_SSH_HOSTS" > "$MONKEY_TEMP/ssh_hosts"
{_spell_ssh_config("$MONKEY_TEMP")}
export MONKEY_SSH_CONFIG="$MONKEY_TEMP/ssh_config\""""

NO_BASE = 'echo "the base branch has no monkey.yaml: push it there first; a pull request has none to trust"; exit 1'

#: `--approved` is the consent: the digest of the plan that the pull request's status has.
APPLY = "monkey apply --detach --prune --approved --project-file monkey.yaml"

AUDIT = """\
code=0
monkey plan --detailed-exitcode || code=$?
monkey audit || code=$?
exit "$code\""""

#: The version of Pulumi that monkey itself would install.
_PULUMI = "3.232.0"


def spell_plugins(kinds: Sequence[str]) -> str:
    """Return the lines that install Pulumi, where the runner has none, and its plugins for these clouds."""
    find = "python -c 'import importlib.metadata as found, sys; print(found.version(sys.argv[1]))' \"$1\""
    return "\n".join(
        [
            f"command -v pulumi > /dev/null || curl -fsSL https://get.pulumi.com | sh -s -- --version {_PULUMI}",
            'export PATH="$PATH:$HOME/.pulumi/bin"',
            f"version() {{ {find}; }}",
            *(f'pulumi plugin install resource {kind} "v$(version pulumi-{kind})"' for kind in kinds),
        ]
    )

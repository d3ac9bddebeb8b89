"""What all jobs of one recipe share, found out once: command, code, environment, variables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from monkey.errors import JobFailed
from monkey.protocol.layout import Keys
from monkey.spec.command.command import JobCommand, compile_command
from monkey.spec.job.job_table import ParameterValue
from monkey.spec.job.recipe import Recipe
from monkey.store.store_port import Store
from monkey.transfer.globs import GlobPatterns
from monkey_agent.cache.code_cache import UnpackedSnapshot
from monkey_agent.environments.environment_build import activate_environment
from monkey_agent.execution.attempt_resources import AttemptResources, list_variables
from monkey_agent.facts.recipe_facts import FactsRecorder, RecipeFacts
from monkey_agent.supervisor.supervisor_client import SupervisorClient

#: Recipes that are remembered.
_REMEMBERED_RECIPES = 64


@dataclass
class PreparedRecipe:
    """A recipe, ready to run; `base` is its environment's number at the supervisor."""

    recipe: Recipe
    code: UnpackedSnapshot
    base: int
    #: Variables that are not in its environment, and those that are.
    withheld: frozenset[str]
    variables: frozenset[str]
    globs: GlobPatterns | None
    facts: RecipeFacts
    #: For a recipe with an image: the variables that its container gets of it.
    inside: Mapping[str, str] | None = None
    _commands: dict[frozenset[str], JobCommand] = field(default_factory=dict)

    def command(self, parameters: Mapping[str, ParameterValue]) -> JobCommand:
        """Return the command for jobs that have these parameters (`when` takes some away); raises CommandError."""
        names = frozenset(parameters)
        command = self._commands.get(names)
        if command is None:
            command = self._commands[names] = compile_command(self.recipe.command, names)
        return command


def select_outputs(recipe: Recipe) -> GlobPatterns | None:
    """Return which of its files a job's outputs are, if the spec says so; raises JobFailed."""
    try:
        return GlobPatterns(recipe.outputs) if recipe.outputs else None
    except ValueError as exc:
        raise JobFailed(f"outputs: {exc}") from exc


class RecipePreparer:
    """Prepares recipes and remembers them."""

    def __init__(
        self,
        launcher: SupervisorClient,
        inherited: Mapping[str, str],
        client: Callable[[], str],
        store: Store,
        keys: Keys,
    ) -> None:
        """Let jobs inherit the variables `inherited`, and import monkey from the directory that `client` returns.

        What their results come from is recorded in `store`.
        """
        self._launcher, self._inherited, self._client = launcher, inherited, client
        self._facts = FactsRecorder(store, keys)
        #: By the recipe's identity as an object: a revision has one, and hashing it would cost more than it saves.
        self._known: dict[int, PreparedRecipe] = {}

    def known(self, recipe: Recipe, withheld: frozenset[str]) -> PreparedRecipe | None:
        """Return what is prepared already."""
        prepared = self._known.get(id(recipe))
        same = prepared is not None and prepared.recipe is recipe and prepared.withheld == withheld
        return prepared if same else None

    def prepare(
        self, recipe: Recipe, code: UnpackedSnapshot, hold: AttemptResources | None, withheld: frozenset[str]
    ) -> PreparedRecipe:
        """Prepare a recipe whose jobs are not to inherit the variables `withheld`; raises JobFailed, OSError."""
        container, inside = hold.container if hold is not None else None, None
        globs, env = select_outputs(recipe), self._environment(recipe, hold, withheld)
        # An image is a stranger's, and so is the environment that it made: no program of it runs here.
        venv = hold.venv if hold is not None and not container else None
        facts = self._facts.collect(recipe.command, env, venv, here=not container)
        if container:
            # The runtime's client runs as programs of the agent do; charliecloud has no client, and gets nothing more.
            inside = self._variables(recipe, hold)
            env = {} if container.runtime.kind == "charliecloud" else self._inherit(withheld)
        known = frozenset(inside if inside is not None else env)
        prepared = PreparedRecipe(recipe, code, self._launcher.base(env), withheld, known, globs, facts, inside)
        while len(self._known) >= _REMEMBERED_RECIPES:
            del self._known[next(iter(self._known))]
        self._known[id(recipe)] = prepared
        return prepared

    def _environment(self, recipe: Recipe, hold: AttemptResources | None, withheld: frozenset[str]) -> dict[str, str]:
        env = self._inherit(withheld)
        env |= self._variables(recipe, hold, env)
        return activate_environment(env, hold.venv) if hold is not None and hold.venv is not None else env

    def _inherit(self, withheld: frozenset[str]) -> dict[str, str]:
        return {name: value for name, value in self._inherited.items() if name not in withheld}

    def _variables(
        self, recipe: Recipe, hold: AttemptResources | None, inherited: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Return the variables that jobs of a recipe have besides those that they inherit, and over them."""
        # A log that is followed must show what was printed; block-wise, a killed job's last words would be lost, too.
        env = {"PYTHONUNBUFFERED": "1", **(inherited or {}), **recipe.env}
        env |= list_variables(hold.datasets) if hold is not None else {}
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (env.get("PYTHONPATH"), self._client())))
        return env

    def forget(self, code: str) -> None:
        """Forget all recipes of a code snapshot."""
        for key in [key for key, prepared in self._known.items() if prepared.recipe.code == code]:
            del self._known[key]

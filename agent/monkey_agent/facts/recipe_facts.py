"""Facts of a recipe's results: collected beside its first job, and stored once for all jobs that share them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from monkey.fleet.gpus import GpuModels, describe_gpus
from monkey.protocol.layout import Keys
from monkey.protocol.record.facts import MAX_FACT_LENGTH, encode_facts, hash_facts
from monkey.store.create import create_object
from monkey.store.store_port import Store
from monkey_agent.facts.interpreter_facts import find_python, read_interpreter_facts
from monkey_agent.facts.machine_facts import read_machine_facts, select_gpu_facts

#: Variables that set numbers of threads, and those that say how exactly libraries compute.
COMPUTING_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "MKL_CBWR",
    "OPENBLAS_CORETYPE",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "TF_DETERMINISTIC_OPS",
    "PYTHONHASHSEED",
)
#: Which Python is asked, in which environment, with which PYTHONPATH.
_Reading = tuple[str | None, Path | None, str | None]


class FactsRecorder:
    """The facts that one agent collects, each kind once in its life, and has stored."""

    def __init__(self, store: Store, keys: Keys) -> None:
        """Collect nothing yet."""
        self._store, self._keys = store, keys
        self._machine: asyncio.Future[dict[str, Any]] | None = None
        self._gpus: asyncio.Future[GpuModels] | None = None
        self._readings: dict[_Reading, asyncio.Future[dict[str, Any]]] = {}
        #: Hashes of those that are in the store.
        self._stored: set[str] = set()
        self._storing = asyncio.Lock()

    def collect(
        self, command: str | Sequence[str], env: Mapping[str, str], venv: Path | None, *, here: bool = True
    ) -> RecipeFacts:
        """Begin to collect the facts of jobs with this command, these variables and this environment; returns at once.

        Not `here`: the jobs run in a container, whose Python is another one than this machine's, and is not asked.

        It takes a thread and some milliseconds of another process, once for all recipes that differ in neither.
        """
        self._machine = self._machine or asyncio.ensure_future(asyncio.to_thread(read_machine_facts))
        python = find_python(command, env.get("PATH")) if here else None
        asked = (python, venv, env.get("PYTHONPATH"))
        if asked not in self._readings:
            self._readings[asked] = asyncio.ensure_future(_survive(read_interpreter_facts(python, env, venv)))
        variables = {name: env[name][:MAX_FACT_LENGTH] for name in COMPUTING_VARIABLES if env.get(name)}
        return RecipeFacts(self, self._machine, self._readings[asked], {"variables": variables} if variables else {})

    async def describe_gpus(self) -> GpuModels:
        """Return the GPUs of the machine: its driver is asked once, and only for a job that has any."""
        self._gpus = self._gpus or asyncio.ensure_future(asyncio.to_thread(describe_gpus))
        return await asyncio.shield(self._gpus)

    async def publish(self, facts: Mapping[str, Any]) -> str:
        """Store the facts durably unless they are there, and return their hash. Raises StoreError."""
        data = encode_facts(facts)
        name = hash_facts(data)
        async with self._storing:
            if name not in self._stored:
                await create_object(self._store, self._keys.facts(name), data)
                self._stored.add(name)
        return name


class RecipeFacts:
    """The facts of results of one recipe on this machine."""

    def __init__(
        self,
        recorder: FactsRecorder,
        machine: asyncio.Future[dict[str, Any]],
        reading: asyncio.Future[dict[str, Any]],
        more: Mapping[str, Any],
    ) -> None:
        """Wait for what is being collected; `more`: facts that are known already."""
        self._recorder, self._machine, self._reading, self._more = recorder, machine, reading, more
        #: The GPUs that a job has to the hash of its facts.
        self._recorded: dict[tuple[str, ...], str] = {}

    async def record(self, gpus: tuple[str, ...]) -> str:
        """Return the hash of the facts of a job with these GPUs, once they are in the store. Raises StoreError."""
        if gpus not in self._recorded:
            # Shielded: an attempt that is cancelled takes nothing from the others.
            facts = {**await asyncio.shield(self._machine), **await asyncio.shield(self._reading), **self._more}
            if gpus:
                facts |= select_gpu_facts(await self._recorder.describe_gpus(), gpus)
            self._recorded[gpus] = await self._recorder.publish(facts)
        return self._recorded[gpus]


async def _survive(reading: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """Return what was read; {} for a Python that cannot be asked: that costs no job its result."""
    try:
        return await reading
    except Exception:
        return {}

"""Names of measurements, tags and fields in InfluxDB, for the code that writes, reads or draws them.

`metrics`: what jobs log. Each metric is a float field of its own name, beside the integer field `step`. The field
`kept` is false for what a later attempt abandoned. Tags sweep, job, attempt, host, rank, user. A series is what one
process of one attempt logged.
`jobs`: a point each time that an attempt begins or ends; tags sweep, job. Without a job: a point for each revision.
`system`: what a machine is doing; tags host, fleet, agent, and where it is of one alone: job, gpu.
"""

from __future__ import annotations

METRICS, JOBS, SYSTEM = "metrics", "jobs", "system"

SWEEP, JOB, HOST, RANK, ATTEMPT = "sweep", "job", "host", "rank", "attempt"
#: Who applied the revision that the job ran under.
USER = "user"
FLEET_TAG, AGENT, GPU = "fleet", "agent", "gpu"
STEP, KEPT, TIME = "step", "kept", "time"

# Fields of `jobs`; HOST, ATTEMPT and USER are fields there, too.
STATE_FIELD, REASON, EXIT_CODE, SECONDS, NONFINITE = "state", "reason", "exit_code", "seconds", "nonfinite"
#: Values of STATE_FIELD.
RUNNING, SUCCEEDED, FAILED, STOPPED, RELEASED = "running", "succeeded", "failed", "stopped", "released"
#: Before a parameter's name: as text, whatever it is, and as a number where it is one. (A field has one type for ever.)
PARAM, NUMBER = "param_", "number_"
#: Before a metric's name: its last, least and greatest finite value.
FINAL, MIN, MAX = "final_", "min_", "max_"
#: The metric that ranks the sweep's jobs, and its value.
METRIC, OBJECTIVE = "metric", "objective"
#: Is it a result, as `monkey results` counts them? An integer that is the greater the better the job is.
COUNTS, RANKED = "counts", "ranked"
#: What tells a job from the others of its sweep: its parameters that vary, and its id.
LABEL = "label"
#: How many jobs the sweep has.
COUNT = "jobs"
#: The sweep's revision: a job of an older one that is no part of the newest has no newer point.
REVISION = "revision"
#: The newest revision whose jobs all have points that say so: older points are of jobs that the sweep has no more.
SINCE = "since"

# Fields of `system`.
CPU_SECONDS, CPU_PERCENT = "cpu_seconds", "cpu_percent"
MEMORY_BYTES, MEMORY_PERCENT = "memory_bytes", "memory_percent"
DISK_USED_PERCENT, DISK_READ_BYTES, DISK_WRITE_BYTES = "disk_used_percent", "disk_read_bytes", "disk_write_bytes"
NET_SENT_BYTES, NET_RECEIVED_BYTES = "net_sent_bytes", "net_received_bytes"
GPU_PERCENT, GPU_MEMORY_BYTES = "gpu_percent", "gpu_memory_bytes"
GPU_POWER_WATTS, GPU_TEMPERATURE = "gpu_power_watts", "gpu_temperature"
#: Jobs that run, and the most that did or may at once.
BUSY, SLOTS = "busy", "slots"

#: A metric of such a name gets an underscore behind it: queries could not tell it from the tag or column.
RESERVED = frozenset({STEP, KEPT, TIME, SWEEP, JOB, HOST, RANK, ATTEMPT, USER})

"""Loggers as packages ship them, in jobs that are killed twice: the record has the values of the loggers' own files.

    python benchmarks/loggers.py [PYTHON]

`PYTHON` has lightning, keras, torch and tensorboard; by default such an environment is made (5 GB). Its line says how
many values were compared, and how many of them the record does not have alike.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from _common import ensure, report

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.acceptance.shop import Shop, until  # beside this folder

PACKAGES = ("keras==3.15.1", "lightning==2.6.6", "tensorboard==2.21.0", "torch==2.15.0")
#: Epochs of ten steps; and the epochs after which all is killed.
EPOCHS, KILLS = 12, (4, 8)
#: What each program keeps for us: a second name of each file of its logger, as an attempt's folder does not stay.
KEEP = """\
import glob, os, sys, time

kind, ledger = sys.argv[1:]
folder = os.environ["MONKEY_CHECKPOINT_DIR"]

def keep():
    for path in glob.glob("logs/**", recursive=True):
        kept = f"{ledger}/{kind}-{os.environ['MONKEY_ATTEMPT']}-{os.path.basename(path)}"
        if os.path.isfile(path) and not os.path.exists(kept):
            os.link(path, kept)
"""
LIGHTNING = """
import lightning, torch
from lightning.pytorch import callbacks, loggers
from torch.utils.data import DataLoader, TensorDataset

class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
    def training_step(self, batch, _):
        time.sleep(0.04)
        loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss
    def validation_step(self, batch, _):
        self.log("val_loss", torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1]))
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

class Keep(lightning.Callback):
    def on_train_batch_end(self, *_):
        keep()

x = torch.randn(160, 8)
data = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16)
logger = loggers.CSVLogger("logs", flush_logs_every_n_steps=1) if kind == "csv" else loggers.TensorBoardLogger("logs")
saver = callbacks.ModelCheckpoint(dirpath=folder, save_last=True, every_n_epochs=1)
last = f"{folder}/last.ckpt"
trainer = lightning.Trainer(max_epochs=EPOCHS, logger=logger, log_every_n_steps=1, accelerator="cpu",
                            enable_progress_bar=False, callbacks=[Keep(), saver])
trainer.fit(Net(), data, data, ckpt_path=last if os.path.exists(last) else None)
"""
KERAS = """
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy

class Keep(keras.callbacks.Callback):
    def on_epoch_end(self, *_):
        keep()
        time.sleep(0.4)

x = numpy.random.rand(160, 8)
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
os.makedirs("logs", exist_ok=True)
todo = [keras.callbacks.BackupAndRestore(folder), keras.callbacks.CSVLogger("logs/keras.csv", append=True), Keep()]
model.fit(x, x.sum(1), validation_data=(x, x.sum(1)), batch_size=16, epochs=EPOCHS, callbacks=todo, verbose=0)
"""
#: Prints what event files hold, as TensorBoard itself reads them.
READ = """\
import json, sys
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

for event in EventFileLoader(sys.argv[1]).Load():
    for value in event.summary.value:
        if value.tensor.float_val:
            print(json.dumps([value.tag, event.step, value.tensor.float_val[0]]))
"""


def main() -> None:
    """Run each logger's job, kill it twice, compare."""
    python = sys.argv[1] if sys.argv[1:] else ensure("loggers", *PACKAGES)
    if python is None:
        raise SystemExit(1)
    with tempfile.TemporaryDirectory() as scratch:
        shop = Shop(Path(scratch) / "shop")
        ledger = Path(scratch) / "kept"
        ledger.mkdir()
        try:
            found = {kind: run_logger(shop, str(python), kind, ledger) for kind in ("csv", "events", "keras")}
        finally:
            shop.kill_all()
    for kind, (values, wrong) in found.items():
        report(f"loggers {kind}", "values that are not as the files have them", wrong, {"values": values}, 0.0)


def run_logger(shop: Shop, python: str, kind: str, ledger: Path) -> tuple[int, int]:
    """Return how many values the logger's files have, and of how many the record says another, or nothing."""
    program = KEEP + f"EPOCHS = {EPOCHS}\n" + (KERAS if kind == "keras" else LIGHTNING)
    (shop.root / f"train_{kind}.py").write_text(program)
    source = {"csv": "{csv: 'logs/**/metrics.csv'}", "events": "tensorboard", "keras": "{csv: logs/keras.csv}"}[kind]
    metric = "val_loss"
    shop.spec(
        f"command: ['{python}', train_{kind}.py, {kind}, '{ledger}']\nparameters: {{}}\noutputs: []\n"
        f"metric: {{name: {metric}}}\ncheckpoint_every: 1s\nmetrics: {{from: [{source}]}}\n",
        name=kind,
    )
    shop.run("apply", "--detach", f"specs/{kind}.yaml")
    for epochs in KILLS:
        until(partial(has_points, shop, kind, metric, epochs), f"{epochs} epochs are logged", 300)
        shop.kill_all()
        shop.run("apply", "--detach", f"specs/{kind}.yaml")
    shop.run("apply", f"specs/{kind}.yaml", patience=300)
    [row] = shop.json("metrics", kind)
    record = {name: dict(zip(of["steps"], of["values"], strict=True)) for name, of in row["metrics"].items()}
    expected = read_files(python, kind, ledger)
    return sum(map(len, expected.values())), sum(
        record.get(name, {}).get(step) != value for name, curve in expected.items() for step, value in curve.items()
    )


def has_points(shop: Shop, sweep: str, metric: str, count: int) -> bool:
    """Has the running job logged so many values of the metric?"""
    said = shop.run("metrics", sweep, "--json", code=None).stdout
    rows = json.loads(said) if said else []
    return any(len(row["metrics"].get(metric, {}).get("steps", ())) >= count for row in rows)


def read_files(python: str, kind: str, ledger: Path) -> dict[str, dict[int, float]]:
    """Return the values by name and step: a later attempt's from its first step on in place of an earlier one's."""
    curves: dict[str, dict[int, float]] = {}
    for path in sorted(ledger.glob(f"{kind}-*"), key=lambda path: int(path.name.split("-")[1])):
        values = read_events(python, path) if kind == "events" else read_table(path)
        if "hparams" in path.name or not values:
            continue
        first = min(step for _, step, _ in values)
        curves = {name: {s: v for s, v in curve.items() if s < first} for name, curve in curves.items()}
        for name, step, value in values:
            curves.setdefault(name, {})[step] = value
    return curves


def read_events(python: str, path: Path) -> list[tuple[str, int, float]]:
    """Return the scalars of an event file, as TensorBoard reads them."""
    said = subprocess.run([python, "-c", READ, str(path)], capture_output=True, text=True)
    return [tuple(json.loads(line)) for line in said.stdout.splitlines()]


def read_table(path: Path) -> list[tuple[str, int, float]]:
    """Return the cells of a CSV file: Lightning has a column `step`, Keras `epoch`."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    key = "step" if rows and "step" in rows[0] else "epoch"
    cells = [(name, int(row[key]), value) for row in rows for name, value in row.items() if name != key]
    return [(name, step, float(value)) for name, step, value in cells if value]


if __name__ == "__main__":
    main()

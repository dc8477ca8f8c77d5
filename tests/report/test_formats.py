"""Reports and samples in formats of other programs, each read by its program or its library."""

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from pyarrow import parquet

from spurtle_sim.cli import main
from spurtle_sim.records.decode import decode_records


def written(profiled: Path, name: str) -> Path:
    """Return the file of this name that `spurtle report -o` has written."""
    path = profiled.with_name(name)
    assert main(["report", "-o", str(path), str(profiled)]) == 0
    return path


def test_json(profiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--json", str(profiled)]) == 0
    text = capsys.readouterr().out
    assert text == written(profiled, "x.json").read_text()
    found = json.loads(text)
    assert found["format"] == 1
    assert len(found["findings"]) == 3
    first = found["lines"][0]
    assert first["name"].startswith("total_mass planted.c:") and first["refill"] == 1
    assert found["lines_latencies"][0]["total"].keys() == {"p50", "p90", "p99"}


def test_csv_has_a_row_for_each_line(profiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--csv", str(profiled)]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    records = list(decode_records(Path(f"{profiled}.spe").read_bytes()))
    assert sum(int(row["samples"]) for row in rows) == len(records)
    assert float(rows[0]["refill"]) == 1 and int(rows[0]["total_p99"]) >= int(rows[0]["total_p50"]) > 0


def test_parquet_has_each_sample(profiled: Path) -> None:
    table = parquet.read_table(written(profiled, "x.parquet"))
    records = list(decode_records(Path(f"{profiled}.spe").read_bytes()))
    assert table["pc"].to_pylist() == [record.pc.address for record in records if record.pc]
    assert table["va"].to_pylist() == [record.va for record in records]
    assert table["total"].to_pylist() == [record.total for record in records]
    assert {"total_mass", "count_odd", "first_column"} <= {*table["function"].to_pylist()}


def test_folded_stacks_and_speedscope(profiled: Path) -> None:
    count = len(list(decode_records(Path(f"{profiled}.spe").read_bytes())))
    stacks = [line.rpartition(" ") for line in written(profiled, "x.folded").read_text().splitlines()]
    assert sum(int(samples) for _, _, samples in stacks) == count
    assert all(stack.partition(";")[2].startswith(stack.partition(";")[0]) for stack, _, _ in stacks)
    found = json.loads(written(profiled, "x.speedscope.json").read_text())
    frames = [frame["name"] for frame in found["shared"]["frames"]]
    samples, cycles = found["profiles"]
    assert samples["endValue"] == sum(samples["weights"]) == count
    assert cycles["endValue"] == sum(cycles["weights"]) > count
    assert all(frames[line].startswith(frames[function]) for function, line in samples["samples"])


@pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed: apt-get install golang-go")
def test_pprof_is_read_by_go(profiled: Path) -> None:
    file = written(profiled, "x.pb.gz")
    shown = subprocess.run(
        ["go", "tool", "pprof", "-top", "-sample_index=samples", str(file)], capture_output=True, text=True, check=False
    )
    if "no such tool" in shown.stderr:
        pytest.skip("this Go has no pprof")
    assert shown.returncode == 0, shown.stderr
    first = shown.stdout.splitlines()[shown.stdout.splitlines().index(next(
        line for line in shown.stdout.splitlines() if line.lstrip().startswith("flat"))) + 1].split()  # fmt: skip
    assert first[-1] == "total_mass"
    count = len(list(decode_records(Path(f"{profiled}.spe").read_bytes())))
    assert f"of {count} total" in shown.stdout


def test_the_name_decides_the_format(profiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "-o", "report.txt", str(profiled)]) == 2
    assert (
        "must end in .html, .json, .csv, .parquet, .folded, .speedscope.json, .pb.gz, not report.txt"
        in capsys.readouterr().err
    )
    assert main(["report", "-o", str(profiled), str(profiled)]) == 2
    assert main(["report", "-o", str(profiled.with_name("no") / "x.csv"), str(profiled)]) == 2

"""Reports on millions of samples: time, memory and size of the page."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spurtle_sim.perf.events import Aux, process_events
from spurtle_sim.perf.process import Process
from spurtle_sim.perf.reader import read_perf_data
from spurtle_sim.perf.writer import Recording, content
from tests.support.tiers import tiers

PAGE_BYTES = 3_000_000
SCRIPT = """
import json, resource, sys
from spurtle_sim.cli import main
status = main(sys.argv[1:])
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10]), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("samples", "cpu_seconds", "most_bytes"), tiers(full=[(1_000_000, 10, 1 << 30)], long=[(10_000_000, 120, 5 << 29)])
)
def test_millions_of_samples(samples: int, cpu_seconds: int, most_bytes: int, profiled: Path, tmp_path: Path) -> None:
    found = read_perf_data(profiled.read_bytes())
    mappings = [each.mapping for each in found.sideband.mappings]
    process = Process(Path(mappings[0].path), ["planted"], found.sideband.mappings[0].pid, mappings)
    buffers = [buffer.data for buffer in found.buffers if len(buffer.data) == 1 << 16]
    aux = [
        Aux(time=1000 * (n + 1), pid=process.pid, tid=process.pid, data=buffers[n % len(buffers)])
        for n in range(-(-samples // 1024))
    ]
    file = tmp_path / "perf.data"
    file.write_bytes(content(Recording(argv=["planted"], events=process_events(process, aux))))
    for arguments in ([], ["-o", str(tmp_path / "x.html")]):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, "report", *arguments, str(file)],
            capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        status, seconds, memory = json.loads(done.stderr.splitlines()[-1])
        assert status == 0
        assert seconds < cpu_seconds
        assert memory < most_bytes
    assert (tmp_path / "x.html").stat().st_size < PAGE_BYTES

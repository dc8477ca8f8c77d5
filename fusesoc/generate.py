"""FuseSoC generator: `generate.py FILE`. The parameters in the YAML file are options of `spurtle verilog`."""

import re
import sys
from pathlib import Path

try:
    import yaml

    from spurtle_sim.cli import main
except ModuleNotFoundError as absent:
    sys.exit(
        f"spurtle: FuseSoC runs the generator with the first python3 in PATH, {sys.executable}, which has no package "
        f"{absent.name}: activate the environment that has Spurtle and PyYAML"
    )


def generate(file: Path) -> int:
    """Write the Verilog and its core file into the current folder. The core has the name that FuseSoC requests.

    Return the exit status.
    """
    request = yaml.safe_load(file.read_text())
    parameters = request.get("parameters") or {}
    if not isinstance(config := parameters.get("config"), str):
        print(f"spurtle: config must be the name of one configuration, not {config!r}", file=sys.stderr)
        return 2
    options = ["verilog", "--output", "."]
    for name, value in parameters.items():
        for one in value if isinstance(value, list) else [value]:
            options += [f"--{name.replace('_', '-')}", str(one)]
    if status := main(options):
        return status
    [core] = Path().glob("*/*.core")
    core.write_text(re.sub(r"^name: .*$", f"name: {request['vlnv']}", core.read_text(), flags=re.MULTILINE))
    return 0


if __name__ == "__main__":
    sys.exit(generate(Path(sys.argv[1])))

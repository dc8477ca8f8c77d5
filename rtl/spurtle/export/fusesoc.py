"""FuseSoC core file."""

from ..config import SPUConfig
from ..support.version import __version__
from .banner import comment, title
from .verilog import Verilog

__all__ = ["core"]


def core(config: SPUConfig, design: Verilog) -> str:
    """Return the FuseSoC core file (CAPI2) of a configuration.

    Each file has its type, and each tool uses the types that it knows. The flow API has no flag with the name of the
    tool that could select files.
    """
    name = design.module
    lines = "\n".join(comment("#", title(design, "FuseSoC core")))
    return f"""\
CAPI=2:
{lines}
name: spurtle:spe:{name}:{__version__}
description: Arm Statistical Profiling Unit (FEAT_SPE), configuration {config.name}

filesets:
  rtl:
    files:
      - {name}.v
      - {name}.vh: {{is_include_file: true}}
    file_type: verilogSource
  waivers:
    files:
      - {name}.vlt: {{file_type: vlt}}
  unpacked:
    files:
      - {name}_unpacked.v
    file_type: verilogSource
  constraints:
    files:
      - {name}.xdc: {{file_type: xdc}}

targets:
  default: &default
    filesets: [rtl, waivers, constraints]
  lint:
    <<: *default
    filesets: [rtl, waivers, unpacked]
    toplevel: {name}_unpacked
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
"""

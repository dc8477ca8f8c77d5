"""All files of a configuration: the Verilog and the files that accompany it."""

from ..config import SPUConfig
from . import ipxact
from .constraints import constraints
from .fusesoc import core
from .header import header
from .macros import macros
from .port_list import port_list
from .svd import svd
from .verilog import Verilog
from .waivers import waivers
from .wrappers import stub, unpacked_verilog, unpacked_vhdl

__all__ = ["files"]


def files(config: SPUConfig, design: Verilog) -> dict[str, str]:
    """Return all files of a configuration, as texts by file name."""
    name = design.module
    texts = {
        f"{name}.v": design.text,
        f"{name}.vh": macros(config, design),
        f"{name}.vlt": waivers(design),
        f"{name}_stub.v": stub(design),
        f"{name}_unpacked.v": unpacked_verilog(design),
        f"{name}_unpacked.vhd": unpacked_vhdl(design),
        f"{name}_ports.json": port_list(config, design),
        f"{name}.h": header(config),
        f"{name}.svd": svd(config),
        **{f"{name}.{suffix}": text for suffix, text in constraints(design).items()},
    }
    texts[f"{name}.xml"] = ipxact.component(config, design)
    texts[f"{name}.core"] = core(config, design)
    return texts

"""The architecture: registers, packets, events and values, under its own names. Without Amaranth."""

from . import registers
from .events import Event
from .packets import ADDRESS_BITS, CR, ETS, EVL, AddressIndex, ContextIndex, CounterIndex, Header, OperationClass
from .register import Field, FineGrainedTrap, Register, Trap
from .registers import *
from .values import BSC, EC, FM, FSC_ASYNCHRONOUS, FSC_SYNCHRONOUS, PAGE_BYTES, PCT, AltClk, PMSVer

__all__ = [
    "ADDRESS_BITS",
    "BSC",
    "CR",
    "EC",
    "ETS",
    "EVL",
    "FM",
    "FSC_ASYNCHRONOUS",
    "FSC_SYNCHRONOUS",
    "PAGE_BYTES",
    "PCT",
    "AddressIndex",
    "AltClk",
    "ContextIndex",
    "CounterIndex",
    "Event",
    "Field",
    "FineGrainedTrap",
    "Header",
    "OperationClass",
    "PMSVer",
    "Register",
    "Trap",
]
__all__ += registers.__all__

"""Registers, packets, events and values of the architecture, under its names. This package does not import Amaranth."""

from . import registers
from .events import Event
from .packets import (
    ADDRESS_BITS,
    CONTEXT_BITS,
    COUNT_BITS,
    CR,
    ETS,
    EVL,
    VIRTUAL_ADDRESS_BITS,
    AddressIndex,
    ContextIndex,
    CounterIndex,
    DataSource,
    Header,
    OperationClass,
)
from .register import ENCODING_BITS, REGISTER_BITS, Field, FineGrainedTrap, Register, Trap
from .registers import *
from .values import BSC, EC, FM, FSC_ASYNCHRONOUS, FSC_SYNCHRONOUS, PAGE_BYTES, PCT, AltClk, PMSVer

__all__ = [
    "ADDRESS_BITS",
    "BSC",
    "CONTEXT_BITS",
    "COUNT_BITS",
    "CR",
    "EC",
    "ENCODING_BITS",
    "ETS",
    "EVL",
    "FM",
    "FSC_ASYNCHRONOUS",
    "FSC_SYNCHRONOUS",
    "PAGE_BYTES",
    "PCT",
    "REGISTER_BITS",
    "VIRTUAL_ADDRESS_BITS",
    "AddressIndex",
    "AltClk",
    "ContextIndex",
    "CounterIndex",
    "DataSource",
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

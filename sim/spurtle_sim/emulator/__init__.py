"""Emulation of AArch64 Linux programs: operations, one by one."""

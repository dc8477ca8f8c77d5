"""Execution of AArch64 Linux programs by QEMU user mode with a plugin, which records each retired instruction."""

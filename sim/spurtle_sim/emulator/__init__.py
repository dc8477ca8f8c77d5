"""Emulator of AArch64 Linux programs, which records each retired instruction as an operation."""

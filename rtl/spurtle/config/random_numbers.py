"""Constants of the pseudorandom number generators (D17.3.2, D17.6.6), which gateware and reference model share."""

__all__ = ["ELEMENT_BITS", "LFSR_ACCESS_RESET", "LFSR_DELAYS", "LFSR_RESET"]

LFSR_DELAYS = (11, 20, 26, 32)
"""Taps of the pseudorandom bit sequence (D17.3.2): each bit is the exclusive OR of the bits 11, 20, 26 and 32 positions
before it. The characteristic polynomial is primitive. The smallest delay is more than 8, so that eight new bits do not
depend on each other."""

LFSR_RESET = 0x6A09_E667
"""Reset state of the generator: the last 32 bits, the newest in bit 0. Any value other than zero is possible."""

LFSR_ACCESS_RESET = 0xBB67_AE85
"""Reset state of the second generator, which chooses the sampled access of an operation with several accesses."""

ELEMENT_BITS = 8
"""Width of the random number that chooses an element of a non-contiguous SVE access. A vector has up to 256 bytes."""

"""Constants of the pseudorandom numbers, which gateware and reference model share (D17.3.2, D17.6.6)."""

__all__ = ["ELEMENT_BITS", "LFSR_ACCESS_RESET", "LFSR_DELAYS", "LFSR_RESET"]

LFSR_DELAYS = (11, 20, 26, 32)
"""The pseudorandom bit sequence of every SPU (D17.3.2): a bit is the exclusive or of those so many places before it.
The characteristic polynomial is primitive, and eight new bits depend on none of each other."""

LFSR_RESET = 0x6A09_E667
"""The generator's state after reset: the last 32 bits, the newest in bit 0. Any but zero would do."""

LFSR_ACCESS_RESET = 0xBB67_AE85
"""The same of the second generator, which chooses what is sampled of an operation that accesses more than one place."""

ELEMENT_BITS = 8
"""Of the random number that chooses an element of a non-contiguous SVE access. A vector has up to 256 bytes."""

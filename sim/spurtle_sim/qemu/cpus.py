"""CPUs that QEMU emulates. They have no features whose instructions cannot be classified."""

__all__ = ["CPU_WITHOUT_SVE", "CPU_WITH_SVE", "DEFAULT_VECTOR_LENGTH"]

CPU_WITHOUT_SVE = "neoverse-n1"
"""CPU for versions of QEMU that do not report the predicated accesses of SVE."""

CPU_WITH_SVE = {128: "neoverse-n2", 256: "neoverse-v1", 512: "a64fx"}
"""CPU for other versions, by the maximum length of its vectors in bits, which a program has at its start."""

DEFAULT_VECTOR_LENGTH = 128

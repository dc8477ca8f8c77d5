"""Operation Type packet (D18.2.7).

Ref: DDI0487 M.a, D18.2.7; D17.6.3 (branches), D17.6.6 (vector lengths).
"""

from amaranth import *
from amaranth.utils import exact_log2

from ..arch import CR, ETS, EVL, OperationClass, PMSVer
from ..arch import operation_types as types
from ..config import SPUConfig
from ..interface.operation import is_destination, is_scalable
from .payload import payload_of

__all__ = ["OperationTypeEncoder"]


class OperationTypeEncoder:
    """Encoder of the Operation Type packet of an operation, as logic in the module of the record.

    Parameters
    ----------
    config : SPUConfig
    operation : OperationLayout
    """

    def __init__(self, config: SPUConfig, operation):
        self._config = config
        self._operation = operation

    def encode(self, m, branch):
        """Return CLASS and payload of the packet.

        A branch that accesses memory is encoded as a branch (D17.6.3).

        Parameters
        ----------
        branch : Value
            The operation is sampled as a branch.
        """
        config = self._config
        facts = self._operation.facts
        memory = facts.load | facts.store
        evl, ets = self._size_codes(m) if config.scalable else (None, None)

        payload = Mux(branch, self._branch(), Mux(memory, self._load_store(evl), self._data_processing(evl, ets)))
        not_branch = Mux(memory, OperationClass.LOAD_STORE, OperationClass.OTHER)
        return Mux(branch, OperationClass.BRANCH, not_branch), payload

    def _size_codes(self, m):
        """Return EVL and ETS: codes of the size in bits that an SVE or SME operation processes (D17.6.6).

        With FEAT_SPE_SME it is the size of all vectors or tiles, otherwise that of one vector, and there is no ETS.
        """
        vectors = self._operation.vectors
        if not self._config.spe_sme:
            return _evl_code(vectors.bits, beyond=EVL.BITS_2048), None
        # A multiplier leaves little of a cycle for wires. Its operands and its result are registers without other
        # readers, so that they can be placed next to it.
        length = Signal(types.VECTOR_LENGTH_BITS, name="vector_length")
        count = Signal.like(vectors.count, name="vector_count")
        product = Signal(len(length) + len(count), name="vector_product")
        size = Signal(types.TILE_SIZE_BITS)
        evl = Signal(len(types.SVE_LOAD_STORE.fields["EVL"]))
        ets = Signal(len(types.SME_DATA_PROCESSING.fields["ETS"]))
        ets_of_tiles = Signal.like(ets)
        m.d.sync += [
            length.eq(vectors.bits),
            count.eq(vectors.count),
            product.eq(length * count),
            size.eq(product),
            evl.eq(_evl_code(size, beyond=EVL.MORE)),
            # `bits` of a tile operation is already the size of all tiles.
            ets_of_tiles.eq(_ets_code(vectors.bits)),
            ets.eq(Mux(vectors.tile, ets_of_tiles, _ets_code(size))),
        ]
        # The code of the whole array is all ones.
        return evl, ets | vectors.whole_array.replicate(len(ets))

    def _branch(self):
        facts = self._operation.facts
        # Without their features, GCS is zero and CR shows that it is not recorded.
        gcs = facts.gcs if self._config.gcs else C(0, 1)
        procedure = C(CR.NOT_RECORDED, 2)
        if self._config.crr:
            procedure = Mux(facts.link, CR.LINK, Mux(facts.procedure_return, CR.RETURN, CR.NEITHER))
        fields = {"COND": facts.conditional, "IND": facts.indirect, "GCS": gcs, "CR": procedure}
        return payload_of(types.BRANCH, short=True, **fields)

    def _data_processing(self, evl, ets):
        """Return the payload of an operation that is neither a branch nor a load or store.

        The most specific format that applies is used: SME, then SVE, then Other.
        """
        config = self._config
        operation = self._operation
        facts = operation.facts

        payload = payload_of(types.OTHER, short=True, COND=facts.conditional)
        # Without FEAT_SPE_FPF, FP and ASE are zero.
        if config.fpf:
            advanced = facts.vector & ~facts.unspecified & ~is_scalable(config, operation)
            fields = {"COND": facts.conditional, "FP": facts.floating_point, "ASE": advanced}
            payload = payload_of(types.OTHER, short=True, **fields)
        if config.scalable:
            vectors = operation.vectors
            sve_payload = payload_of(
                types.SVE_DATA_PROCESSING, FP=facts.floating_point, PRED=vectors.predicated, EVL=evl
            )
            payload = Mux(vectors.sve, sve_payload, payload)
        if config.spe_sme:
            sme_payload = payload_of(types.SME_DATA_PROCESSING, FP=facts.floating_point, ETS=ets)
            payload = Mux(vectors.sme, sme_payload, payload)
        return payload

    def _load_store(self, evl):
        """Return the payload of a load or store, in the most specific format that applies."""
        config = self._config
        operation = self._operation
        facts = operation.facts
        # LDST is zero for an atomic that returns a value, which loads as well. Of two accesses the sampled one counts.
        ldst = facts.store & (~facts.load | is_destination(config, facts))

        payload = payload_of(types.GENERAL, short=True, LDST=ldst, SIMD_FP=facts.simd_fp)
        # The format for unspecified registers is defined from FEAT_SPEv1p1 on.
        if config.version >= PMSVer.SPE_V1P1:
            payload = Mux(facts.unspecified, payload_of(types.UNSPECIFIED, LDST=ldst), payload)
        extended = facts.atomic | facts.acquire_release | facts.exclusive
        flags = {"AT": facts.atomic, "EXCL": facts.exclusive, "AR": facts.acquire_release}
        payload = Mux(extended, payload_of(types.EXTENDED, short=True, LDST=ldst, **flags), payload)
        # Without FEAT_SPE_SME, the format of an SME load or store is IMPLEMENTATION DEFINED (D17.6.6 R_BHKSC).
        if config.sme and not config.spe_sme:
            payload = Mux(operation.vectors.sme, payload_of(types.UNSPECIFIED, LDST=ldst), payload)
        if config.scalable:
            # From FEAT_SPEv1p2 on, a load with zeroing predication is recorded as predicated.
            pred_recorded = C(config.version >= PMSVer.SPE_V1P2, 1) | ~facts.load
            predicated = operation.vectors.predicated & pred_recorded
            fields = {"PRED": predicated, "EVL": evl, "SG": operation.vectors.gather_scatter}
            sve_payload = payload_of(types.SVE_LOAD_STORE, LDST=ldst, **fields)
            # With FEAT_SPE_SME, an SME load or store has the format of SVE as well (D17.6.6 R_BHKSC).
            has_sve_form = is_scalable(config, operation) if config.spe_sme else operation.vectors.sve
            payload = Mux(has_sve_form, sve_payload, payload)
        if config.nv2:
            payload = Mux(facts.nv2, payload_of(types.NV2, LDST=ldst), payload)
        # The format for Allocation Tags is defined from FEAT_SPEv1p3 on.
        if config.mte and config.version >= PMSVer.SPE_V1P3:
            payload = Mux(facts.allocation_tag, payload_of(types.TAG, LDST=ldst), payload)
        if config.gcs:
            # COMM distinguishes GCS instructions from branches with link and procedure returns.
            common = ~(facts.link | facts.procedure_return)
            payload = Mux(facts.gcs, payload_of(types.GUARDED_CONTROL_STACK, LDST=ldst, COMM=common), payload)
        if config.mops:
            payload = Mux(facts.memory_set, types.MEMORY_SET.value, payload)
            payload = Mux(facts.memory_copy, payload_of(types.MEMORY_COPY, LDST=ldst), payload)
        return payload


def _evl_code(size, *, beyond: EVL):
    """Return the code of the size of vectors. That of several can be greater than the maximum of one."""
    return _rounded_up(size, EVL.BITS_32, exact_log2(types.EVL_UNIT), EVL.BITS_2048, beyond=beyond)


def _ets_code(size):
    return _rounded_up(size, ETS.BITS_128, exact_log2(types.ETS_UNIT), ETS.BITS_262144, beyond=ETS.WHOLE_ARRAY)


def _rounded_up(size, first: int, power: int, last: int, *, beyond: int):
    """Return the code of a size in bits, rounded up to the next size that has a code.

    The codes from `first` to `last` stand for 2^power bits and its successive doubles. `beyond` stands for any larger
    size.
    """
    code = C(beyond, int(last).bit_length())
    for index in reversed(range(last - first + 1)):
        # The size is greater than 2^bit if a higher bit is one, or this bit and a lower one.
        bit = power + index
        greater = size[bit + 1 :].any() | (size[bit] & size[:bit].any())
        code = Mux(greater, code, first + index)
    return code

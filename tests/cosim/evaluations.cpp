// Drives the SPU with a table of inputs, one row of 32-bit words for each cycle, and returns a table of outputs: the
// outputs of the write port before the clock edge, and the others after it. A cycle takes EVALUATIONS evaluations. With
// GATED, there is a clock for the registers that seldom change.

#include <cstring>

#include "design.h"
#include "layout.h"

// Rows of `inputs` have INPUT_WORDS words, and rows of `outputs` have OUTPUT_WORDS words. Return the number of edges of
// the gated clock.
extern "C" uint64_t evaluate(const uint32_t *inputs, uint64_t cycles, uint32_t *outputs) {
    VerilatedContext context;
    design spu(&context);
    spu.eval();
    uint64_t edges = 0;
#if GATED
    GatedInputs gated_inputs;
#endif
    for (uint64_t cycle = 0; cycle < cycles; cycle++, inputs += INPUT_WORDS, outputs += OUTPUT_WORDS) {
#define INPUT(port, word) std::memcpy(&port, inputs + word, sizeof port);
#define OUTPUT(port, word) std::memcpy(outputs + word, &port, sizeof port);
        INPUTS
        if (EVALUATIONS == 2) {
            spu.clk = 0;
            spu.eval();
        }
        WRITE
        spu.clk ^= 1;
#if GATED
        if (spu.gated_changed || spu.gated_watched || !gated_inputs.equal(spu)) {
            spu.gated_clk ^= 1;
            gated_inputs.capture(spu);
            edges++;
        }
#endif
        spu.eval();
        OUTPUTS
    }
    return edges;
}

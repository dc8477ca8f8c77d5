// Drives the SPU with a table of inputs, one row of 32-bit words for each cycle, and returns a table of outputs: the
// outputs of the write port before the clock edge, and the others after it. A cycle takes EVALUATIONS evaluations.

#include <cstring>

#include "design.h"
#include "layout.h"

// Rows of `inputs` have INPUT_WORDS words, and rows of `outputs` have OUTPUT_WORDS words.
extern "C" void evaluate(const uint32_t *inputs, uint64_t cycles, uint32_t *outputs) {
    VerilatedContext context;
    design spu(&context);
    spu.eval();
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
        spu.eval();
        OUTPUTS
    }
}

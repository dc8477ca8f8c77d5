// Turns samples into records on the compiled record path, the part of the SPU between its slot and its buffer.

#include <cstring>

#include "design.h"
#include "layout.h"
#include "ports.h"

// `samples` holds SAMPLE_WORDS 32-bit words a sample, `records` RECORD_BYTES a record.
extern "C" void record_engine_encode(const uint32_t *samples, uint64_t count, uint8_t *records) {
    VerilatedContext context;
    design path(&context);
    path.PORT(beat, ready) = 1;
    for (uint64_t sample = 0; sample < count; sample++) {
        std::memcpy(path.PORT(sample, payload).data(), samples + sample * SAMPLE_WORDS, 4 * SAMPLE_WORDS);
        // The record is worked out in the cycle before the sample is valid.
        path.clk = 0;
        path.eval();
        path.clk = 1;
        path.eval();
        path.PORT(sample, valid) = 1;
        for (unsigned byte = 0; byte < RECORD_BYTES;) {
            path.clk = 0;
            path.eval();
            if (path.PORT(beat, valid))
                for (unsigned lane = 0; lane < BEAT_BYTES; lane++, byte++)
                    records[sample * RECORD_BYTES + byte] =
                        get_field(path.PORT(beat, payload).data(), {BEAT_DATA.offset + 8 * lane, 8});
            // The last beat comes out one cycle after the sample was taken with it.
            bool taken = path.PORT(sample, ready);
            path.clk = 1;
            path.eval();
            if (taken) path.PORT(sample, valid) = 0;
        }
    }
}

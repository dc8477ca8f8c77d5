// Encodes samples as records on the compiled record path, the part of the SPU between its slots and its buffer.

#include <cstring>

#include "design.h"
#include "layout.h"
#include "ports.h"

// `samples` has SAMPLE_WORDS 32-bit words for each sample. `records` has MAX_RECORD_BYTES for each record, and `sizes`
// receives its number of bytes.
extern "C" void record_path_encode(const uint32_t *samples, uint64_t count, uint8_t *records, uint32_t *sizes) {
    VerilatedContext context;
    design path(&context);
    path.PORT(beat, ready) = 1;
    path.accepted = 1;
    auto edge = [&path] {
        path.clk = 1;
        path.eval();
        path.clk = 0;
        path.eval();
    };
    for (uint64_t sample = 0; sample < count; sample++, records += MAX_RECORD_BYTES) {
        std::memcpy(words_of(path.PORT(sample, payload)), samples + sample * SAMPLE_WORDS, 4 * SAMPLE_WORDS);
        // The record is computed in the two cycles before the sample is valid.
        edge();
        edge();
        path.PORT(sample, valid) = 1;
        path.eval();
        unsigned size = 0;
        for (bool last = false; !last;) {
            if (path.PORT(beat, valid)) {
                const uint32_t *beat = words_of(path.PORT(beat, payload));
                last = get_field(beat, BEAT_LAST);
                unsigned end = get_field(beat, BEAT_END) * ALIGN;
                unsigned bytes = last && end ? end : BEAT_BYTES;
                for (unsigned lane = 0; lane < bytes; lane++)
                    records[size++] = get_field(beat, {BEAT_DATA.offset + 8 * lane, 8});
            }
            // The last beat is sent some cycles after the sample was accepted.
            bool accepted = path.PORT(sample, ready);
            edge();
            if (accepted) path.PORT(sample, valid) = 0;
        }
        sizes[sample] = size;
    }
}

// Runs the compiled filter for each sample under each setting of the registers.

#include <cstring>

#include "design.h"
#include "layout.h"

// A sample has SAMPLE_WORDS 32-bit words and a setting has SETTING_WORDS. `answers` has a row for each setting, with the
// answer for each sample.
extern "C" void decide(const uint32_t *samples, uint64_t sample_count, const uint32_t *settings, uint64_t setting_count,
                       uint32_t *answers) {
    VerilatedContext context;
    design filter(&context);
    static_assert(sizeof filter.answer <= sizeof *answers);
    for (uint64_t setting = 0; setting < setting_count; setting++) {
        std::memcpy(words_of(filter.registers), settings + setting * SETTING_WORDS, 4 * SETTING_WORDS);
        for (uint64_t sample = 0; sample < sample_count; sample++) {
            std::memcpy(words_of(filter.sample), samples + sample * SAMPLE_WORDS, 4 * SAMPLE_WORDS);
            filter.eval();
            *answers++ = filter.answer;
        }
    }
}

// Permutes numbers by gather loads and scatter stores, and by structure loads and stores of SVE.
#include <arm_sve.h>
#include <stdint.h>
#include <stdio.h>

static uint64_t source[256], target[256], pairs[512];

int main(void) {
    for (int i = 0; i < 256; i++) source[i] = i * i;
    for (long i = 0; i < 256; i += svcntd()) {
        svbool_t active = svwhilelt_b64(i, 256L);
        svuint64_t index = svand_x(active, svmul_x(active, svindex_u64(i, 1), 77), 255);
        svuint64_t value = svld1_gather_index(active, source, index);
        svst1_scatter_index(active, target, sveor_x(active, index, 255), value);
        svst2(active, &pairs[2 * i], svcreate2(value, index));
    }
    for (long i = 0; i < 256; i += svcntd()) {
        svbool_t active = svwhilelt_b64(i, 256L);
        svuint64x2_t both = svld2(active, &pairs[2 * i]);
        svst1(active, &source[i], svadd_x(active, svget2(both, 0), svget2(both, 1)));
    }
    uint64_t sum = 0;
    for (int i = 0; i < 256; i++) sum = 31 * sum + source[i] + target[i];
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}

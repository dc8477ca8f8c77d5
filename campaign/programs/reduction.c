// Reduces integers by SVE: sums, maxima, compaction of selected elements, and products of bytes.
#include <arm_sve.h>
#include <stdint.h>
#include <stdio.h>

static int32_t values[777];
static int8_t bytes[1024];

int main(void) {
    for (int i = 0; i < 777; i++) values[i] = i * 7919 % 1009 - 500;
    for (int i = 0; i < 1024; i++) bytes[i] = i * 31 % 127 - 60;
    int64_t sum = 0, selected = 0;
    int32_t largest = INT32_MIN;
    for (int i = 0; i < 777; i += svcntw()) {
        svbool_t active = svwhilelt_b32(i, 777);
        svint32_t value = svld1(active, &values[i]);
        svbool_t odd = svcmpne(active, svand_x(active, value, 1), 0);
        int32_t highest = svmaxv(active, value);
        sum += svaddv(active, value);
        selected += svaddv(svwhilelt_b32((uint64_t)0, svcntp_b32(active, odd)), svcompact(odd, value));
        if (highest > largest) largest = highest;
    }
    svint32_t products = svdup_s32(0);
    for (int i = 0; i < 1024; i += svcntb()) {
        svint8_t part = svld1(svptrue_b8(), &bytes[i]);
        products = svdot(products, part, part);
    }
    printf("%lld %lld %d %lld\n", (long long)sum, (long long)selected, largest, (long long)svaddv(svptrue_b32(), products));
    return 0;
}

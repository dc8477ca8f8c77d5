// Computes with complex numbers and saturated integers, in loops that the compiler translates to SVE2.
#include <complex.h>
#include <stdint.h>
#include <stdio.h>

static float complex left[500], right[500], product[500];
static uint8_t first[2000], second[2000], mean[2000];

int main(void) {
    for (int i = 0; i < 500; i++) {
        left[i] = i - 250 + I * (i % 7);
        right[i] = i % 11 - I * i;
    }
    for (int i = 0; i < 2000; i++) {
        first[i] = i * 3;
        second[i] = i * 5 + 1;
    }
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 500; i++) {
            float a = crealf(left[i]), b = cimagf(left[i]), c = crealf(right[i]), d = cimagf(right[i]);
            product[i] += a * c - b * d + I * (a * d + b * c);
        }
        for (int i = 0; i < 2000; i++) mean[i] = (first[i] + second[i] + 1) >> 1;
    }
    unsigned sum = 0;
    for (int i = 0; i < 2000; i++) sum += mean[i] * (i & 15);
    printf("%.0f %.0f %u\n", crealf(product[100]), cimagf(product[499]), sum);
    return 0;
}

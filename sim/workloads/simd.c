/* Multiply single-precision matrices with Advanced SIMD. The program has floating-point latencies and wide loads.
 * Hot function: multiply. */

#include <arm_neon.h>

#include "start.h"

#define SIZE 64
#define ROUNDS 2

typedef float matrix[SIZE][SIZE];

static matrix a, b, c;

__attribute__((noinline)) static void multiply(matrix product, matrix left, matrix right)
{
    for (int row = 0; row < SIZE; row++)
        for (int column = 0; column < SIZE; column += 4) {
            float32x4_t sum = vdupq_n_f32(0);
            for (int k = 0; k < SIZE; k++)
                sum = vfmaq_n_f32(sum, vld1q_f32(&right[k][column]), left[row][k]);
            vst1q_f32(&product[row][column], sum);
        }
}

int main(void)
{
    for (int row = 0; row < SIZE; row++)
        for (int column = 0; column < SIZE; column++) {
            a[row][column] = (float)(random_number() & 0xFF) / 16384;
            b[row][column] = (float)(random_number() & 0xFF) / 16384;
        }
    for (int round = 0; round < ROUNDS; round++) {
        multiply(c, a, b);
        multiply(a, c, b);
    }

    unsigned sum = 0;
    for (int row = 0; row < SIZE; row++)
        for (int column = 0; column < SIZE; column++)
            sum = sum * 31 + vgetq_lane_u32(vreinterpretq_u32_f32(vdupq_n_f32(a[row][column])), 0);
    print("simd", sum);
    return 0;
}

/* Three planted problems of performance, which a report shows: a structure that wastes its cache lines, an unpredictable
 * branch, and a stride that thrashes one set of the L1 data cache. */

#include "start.h"

#define PARTICLES 4096 /* of 64 bytes: 256 KiB */
#define NUMBERS 1024
#define ROWS 12
#define ROW_BYTES 16384 /* 64 KiB / 4 ways: all rows begin in the same set */

struct particle {
    unsigned mass;
    char rest[60];
} __attribute__((aligned(64)));

static struct particle particles[PARTICLES];
static unsigned numbers[NUMBERS];
static unsigned char grid[ROWS][ROW_BYTES] __attribute__((aligned(ROW_BYTES)));

__attribute__((noinline)) static unsigned total_mass(void)
{
    unsigned sum = 0;
    for (int i = 0; i < PARTICLES; i++)
        sum += particles[i].mass;
    return sum;
}

__attribute__((noinline)) static unsigned count_odd(unsigned seed)
{
    unsigned odd = 0;
    for (int i = 0; i < NUMBERS; i++) {
        if ((numbers[i] ^ seed) & 1)
            odd += numbers[i] % 7;
        __asm__ volatile("" : "+r"(odd));
    }
    return odd;
}

__attribute__((noinline)) static unsigned first_column(void)
{
    unsigned sum = 0;
    for (int row = 0; row < ROWS; row++)
        sum += *(volatile unsigned char *)&grid[row][0];
    return sum;
}

int main(void)
{
    unsigned sum = 0;
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = random_number();
    for (int i = 0; i < PARTICLES; i++)
        particles[i].mass = random_number();
    /* Linux assigns physical pages in this order. They decide the set. */
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < ROW_BYTES; column += 4096)
            grid[row][column] = random_number();
    for (int round = 0; round < 40; round++) {
        sum += total_mass() + count_odd(random_number());
        numbers[round] = random_number();
        for (int repeat = 0; repeat < 200; repeat++)
            sum += first_column();
    }
    print("planted", sum);
    return 0;
}

// Program of the soft core: an endless loop over a sort, a CRC, a string search and a matrix product. Their costs
// differ clearly, and each has its own functions.
// Each round initializes the data that it uses, because block RAM keeps its content when the FPGA is reset.

#include <stdint.h>

#define WORK __attribute__((noinline, noclone))

enum { VALUES = 48, BYTES = 96, SIDE = 6 };

static uint32_t values[VALUES];
static uint8_t text[BYTES + 1];
static uint32_t a[SIDE][SIDE], b[SIDE][SIDE], product[SIDE][SIDE];
volatile uint32_t result;

// Return the next pseudorandom number (xorshift), with shifts and exclusive ors and without memory accesses.
WORK uint32_t random_number(uint32_t state)
{
    state ^= state << 13;
    state ^= state >> 17;
    return state ^ state << 5;
}

WORK void insertion_sort(uint32_t *sorted, int count)
{
    for (int end = 1; end < count; end++) {
        uint32_t value = sorted[end];
        int index = end;
        for (; index > 0 && sorted[index - 1] > value; index--)
            sorted[index] = sorted[index - 1];
        sorted[index] = value;
    }
}

// Return the CRC-32, computed bit by bit.
WORK uint32_t crc(const uint8_t *bytes, int count)
{
    uint32_t remainder = ~0u;
    for (int byte = 0; byte < count; byte++) {
        remainder ^= bytes[byte];
        for (int bit = 0; bit < 8; bit++)
            remainder = remainder & 1 ? remainder >> 1 ^ 0xEDB88320u : remainder >> 1;
    }
    return ~remainder;
}

// Multiply with shifts and additions: RV32I has no multiply instruction.
WORK uint32_t multiply(uint32_t left, uint32_t right)
{
    uint32_t sum = 0;
    for (; right; right >>= 1, left <<= 1)
        if (right & 1)
            sum += left;
    return sum;
}

WORK void matrix_product(void)
{
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++) {
            uint32_t sum = 0;
            for (int k = 0; k < SIDE; k++)
                sum += multiply(a[row][k], b[k][column]);
            product[row][column] = sum;
        }
}

// Return the index of `pattern` in `string`, or -1.
WORK int find(const uint8_t *string, const char *pattern)
{
    for (int index = 0; string[index]; index++) {
        int length = 0;
        while (pattern[length] && string[index + length] == (uint8_t)pattern[length])
            length++;
        if (!pattern[length])
            return index;
    }
    return -1;
}

// The rounds are called through the table below, which gives indirect calls.
WORK uint32_t sort_round(uint32_t state)
{
    for (int index = 0; index < VALUES; index++)
        values[index] = state = random_number(state);
    insertion_sort(values, VALUES);
    return values[VALUES / 2];
}

WORK uint32_t text_round(uint32_t state)
{
    for (int index = 0; index < BYTES; index++) {
        state = random_number(state);
        text[index] = 'a' + (state >> 24 & 3);
    }
    text[BYTES] = 0;
    return crc(text, BYTES) + find(text, "abcab");
}

WORK uint32_t matrix_round(uint32_t state)
{
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++) {
            state = random_number(state);
            a[row][column] = state >> 26;
            b[row][column] = state >> 20 & 63;
        }
    matrix_product();
    return product[SIDE - 1][SIDE - 1];
}

static uint32_t (*const rounds[])(uint32_t) = {sort_round, text_round, matrix_round, text_round};

int main(void)
{
    uint32_t state = 1;
    for (uint32_t round = 0;; round++) {
        state = random_number(state);
        result = rounds[round & 3](state);
    }
}

// The entry point sets the stack pointer, which is undefined after reset.
__attribute__((naked, section(".start"))) void start(void)
{
    __asm__ volatile("lui sp, %hi(stack_top)\n addi sp, sp, %lo(stack_top)\n jal zero, main");
}

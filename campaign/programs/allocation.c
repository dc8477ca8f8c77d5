// Allocates, resizes and frees memory in a pseudorandom order, and prints a checksum of the content.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    enum { COUNT = 64 };
    unsigned char *blocks[COUNT] = {0};
    size_t sizes[COUNT] = {0};
    unsigned state = 7, sum = 0;
    for (int step = 0; step < 4000; step++) {
        state = state * 1664525 + 1013904223;
        int index = state >> 26;
        size_t size = (state >> 8) % (step % 100 ? 2000 : 300000) + 1;
        blocks[index] = realloc(blocks[index], size);
        if (!blocks[index]) return 1;
        if (size > sizes[index]) memset(blocks[index] + sizes[index], step, size - sizes[index]);
        sizes[index] = size;
        sum += blocks[index][size / 2];
        if (state >> 5 & 1) {
            free(blocks[index]);
            blocks[index] = 0;
            sizes[index] = 0;
        }
    }
    printf("%u\n", sum);
    return 0;
}

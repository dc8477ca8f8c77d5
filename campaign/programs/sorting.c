// Sorts pseudorandom numbers by qsort and prints some of them.
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *left, const void *right) {
    unsigned a = *(const unsigned *)left, b = *(const unsigned *)right;
    return (a > b) - (a < b);
}

int main(void) {
    static unsigned values[3000];
    unsigned state = 1;
    for (int i = 0; i < 3000; i++) values[i] = state = state * 1664525 + 1013904223;
    qsort(values, 3000, sizeof(values[0]), compare);
    for (int i = 0; i < 3000; i += 500) printf("%u\n", values[i]);
    return 0;
}

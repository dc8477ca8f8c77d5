/* Sort pseudorandom numbers with heapsort. Its branches are hard to predict.
 * Hot function: sift. */

#include "start.h"

#define COUNT 6000

static unsigned numbers[COUNT];

/* Sift down the number at `hole` until no child is larger. */
__attribute__((noinline)) static void sift(unsigned *heap, unsigned hole, unsigned count)
{
    unsigned sifted = heap[hole];
    for (;;) {
        unsigned child = 2 * hole + 1;
        if (child >= count)
            break;
        if (child + 1 < count && heap[child] < heap[child + 1])
            child++;
        if (sifted >= heap[child])
            break;
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = sifted;
}

int main(void)
{
    for (unsigned i = 0; i < COUNT; i++)
        numbers[i] = random_number();
    for (unsigned i = COUNT / 2; i-- > 0;)
        sift(numbers, i, COUNT);
    for (unsigned count = COUNT - 1; count > 0; count--) {
        unsigned largest = numbers[0];
        numbers[0] = numbers[count];
        numbers[count] = largest;
        sift(numbers, 0, count);
    }

    unsigned sum = 0, unsorted = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        sum = sum * 31 + numbers[i];
        unsorted |= i > 0 && numbers[i - 1] > numbers[i];
    }
    print("sort", sum);
    return unsorted;
}

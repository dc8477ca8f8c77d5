/* Heap sort of numbers that look random: its branches cannot be predicted.
 * Hot function: sift. */

#include "start.h"

#define COUNT 6000

static unsigned numbers[COUNT];

/* Let the number at `hole` sink until no child is larger. */
__attribute__((noinline)) static void sift(unsigned *heap, unsigned hole, unsigned count)
{
    unsigned sinking = heap[hole];
    for (;;) {
        unsigned child = 2 * hole + 1;
        if (child >= count)
            break;
        if (child + 1 < count && heap[child] < heap[child + 1])
            child++;
        if (sinking >= heap[child])
            break;
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = sinking;
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

    unsigned sum = 0, wrong = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        sum = sum * 31 + numbers[i];
        wrong |= i > 0 && numbers[i - 1] > numbers[i];
    }
    print("sort", sum);
    return wrong;
}

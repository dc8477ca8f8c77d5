/* Follow a ring of nodes in pseudorandom order. Each load depends on the previous one, and most loads miss the
 * first-level cache. Hot function: chase. */

#include "start.h"

#define NODES 8192 /* of 64 bytes: 512 KiB */
#define STEPS 300000

struct node {
    struct node *next;
    unsigned value;
    char rest[48];
} __attribute__((aligned(64)));

static struct node nodes[NODES];
static unsigned order[NODES];

__attribute__((noinline)) static unsigned chase(const struct node *node, unsigned steps)
{
    unsigned sum = 0;
    while (steps-- > 0) {
        sum += node->value;
        node = node->next;
    }
    return sum;
}

int main(void)
{
    for (unsigned i = 0; i < NODES; i++)
        order[i] = i;
    for (unsigned i = NODES - 1; i > 0; i--) {
        unsigned j = random_number() % (i + 1), swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
    for (unsigned i = 0; i < NODES; i++) {
        nodes[order[i]].next = &nodes[order[(i + 1) % NODES]];
        nodes[order[i]].value = random_number();
    }
    print("chase", chase(&nodes[0], STEPS));
    return 0;
}

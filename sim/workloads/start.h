/* Run-time support of the workloads: entry point, `print` and `exit`. */

static long system_call(long number, long a, long b, long c)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}

/* Print "NAME: VALUE", with VALUE as eight hexadecimal digits. */
static void print(const char *name, unsigned value)
{
    char line[64];
    int length = 0;
    while (*name)
        line[length++] = *name++;
    line[length++] = ':';
    line[length++] = ' ';
    for (int shift = 28; shift >= 0; shift -= 4)
        line[length++] = "0123456789abcdef"[value >> shift & 15];
    line[length++] = '\n';
    system_call(64, 1, (long)line, length);
}

int main(void);

void _start(void)
{
    system_call(94, main(), 0, 0);
    __builtin_unreachable();
}

/* Pseudorandom numbers: the upper bits of a linear congruential generator. */
static unsigned random_state = 1;

static unsigned random_number(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

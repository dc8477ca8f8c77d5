// Handles signals on an alternate stack, and leaves a handler by siglongjmp.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static sigjmp_buf start;
static volatile sig_atomic_t handled;

static void count(int number) {
    handled += number;
}

static void leave(int number) {
    siglongjmp(start, number);
}

int main(void) {
    static char memory[65536];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
    struct sigaction counting = {.sa_handler = count}, leaving = {.sa_handler = leave, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&stack, 0) || sigaction(SIGUSR1, &counting, 0) || sigaction(SIGSEGV, &leaving, 0)) return 1;
    for (int i = 0; i < 100; i++) raise(SIGUSR1);
    volatile int faults = 0;
    if (sigsetjmp(start, 1)) faults++;
    if (faults < 20) *(volatile int *)8 = 1;
    printf("%d %d\n", (int)handled, faults);
    fflush(stdout);
    abort();
}

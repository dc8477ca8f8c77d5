// Starts QEMU, and finds out which signals a terminal has sent to it.

#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "layout.h"

namespace {

struct sigaction before[NSIG];                  // of the signals that are watched
volatile sig_atomic_t sent_by_terminal[NSIG];  // whether the kernel has sent the last one, and not a process

void handle(int number, siginfo_t *information, void *) {
    sent_by_terminal[number] = information->si_code == SI_KERNEL;
    before[number].sa_handler(number);
}

}  // namespace

// Watch a signal, for which Python has a handler.
extern "C" void launch_watch(int number) {
    struct sigaction action;
    sigaction(number, nullptr, &action);
    if (action.sa_flags & SA_SIGINFO || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return;
    before[number] = action;
    action.sa_flags |= SA_SIGINFO;
    action.sa_sigaction = handle;
    sigaction(number, &action, nullptr);
}

// Return whether a terminal has sent the last signal with this number, and forget it.
extern "C" bool launch_take_sent_by_terminal(int number) {
    bool sent = sent_by_terminal[number];
    sent_by_terminal[number] = 0;
    return sent;
}

// Start a program, with the environment of this process. Return its number, or -1.
extern "C" int launch_start(char *const *arguments) {
    pid_t child = fork();
    if (child) return child;
    // Only functions that are safe after a fork of a process with threads.
    personality(ADDR_NO_RANDOMIZE);     // addresses are the same in every run
    prctl(PR_SET_PDEATHSIG, SIGKILL);   // without the parent, the rings are not read
    signal(SIGPIPE, SIG_DFL);           // Python ignores them
    signal(SIGXFSZ, SIG_DFL);
    execv(arguments[0], arguments);
    _exit(PROFILE_FAILED);
}

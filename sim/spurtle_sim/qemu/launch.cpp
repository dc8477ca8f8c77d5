// Starts QEMU.

#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

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
    _exit(125);
}

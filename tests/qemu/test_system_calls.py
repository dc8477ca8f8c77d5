"""System calls of Unicorn have the results that they have in QEMU without Spurtle."""

import subprocess
import sys
from pathlib import Path

import pytest

from spurtle_sim.qemu.find import Qemu
from tests.support.qemu import CROSS_COMPILER, needs_compiler, qemu_versions

CALLS = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static long call(const char *name, long result) {
    printf("%s: %ld %s\n", name, result, result < 0 ? strerrorname_np(errno) : "");
    errno = 0;
    return result;
}
#define CALL(expression) call(#expression, (long)(expression))

static void paths(void) {
    char text[4096];
    CALL(getcwd(text, 3) != 0);
    CALL(syscall(SYS_getcwd, text, sizeof(text)));
    puts(text);
    CALL(syscall(SYS_getcwd, text, 2));
    CALL(readlink("link", text, sizeof(text)));
    printf("%.9s\n", text);
    CALL(readlink("link", text, 4));
    CALL(readlink("file", text, 4));
    CALL(readlinkat(AT_FDCWD, "absent", text, 4));
    CALL(syscall(SYS_readlinkat, AT_FDCWD, "link", text, 0));
    int folder = CALL(open("folder", O_RDONLY | O_DIRECTORY));
    CALL(openat(folder, "../file", O_RDONLY | O_CLOEXEC));
    CALL(open("file", O_DIRECTORY));
    CALL(open("link/x", O_RDONLY));
    CALL(open("link", O_RDONLY | O_NOFOLLOW));
    for (char *names[] = {"file", "folder", "link", "absent", "/dev/null"}, **name = names; name < names + 5; name++) {
        struct stat status = {0};
        struct statx extended = {0};
        CALL(lstat(*name, &status));
        printf("%o %ld %ld %u\n", status.st_mode, status.st_ino, status.st_size, status.st_uid);
        printf("%d\n", (int)status.st_nlink);
        CALL(stat(*name, &status));
        printf("%o %ld %ld %ld\n", status.st_mode, status.st_ino, status.st_mtime, status.st_rdev);
        CALL(statx(AT_FDCWD, *name, 0, STATX_BASIC_STATS, &extended));
        printf("%o %lld %lld\n", extended.stx_mode, (long long)extended.stx_ino, (long long)extended.stx_size);
        CALL(access(*name, R_OK));
        CALL(access(*name, X_OK));
    }
    long entries = 0, inodes = 0;
    DIR *directory = fdopendir(folder);
    for (struct dirent *entry; (entry = readdir(directory)); entries++)
        if (strcmp(entry->d_name, "..")) inodes += entry->d_ino * strlen(entry->d_name) + entry->d_type;
    printf("%ld entries, %ld\n", entries, inodes);
    rewinddir(directory);
    CALL(readdir(directory) != 0);
    CALL(syscall(SYS_getdents64, 0, text, sizeof(text)));
    CALL(closedir(directory));
    CALL(chdir("folder"));
    CALL(access("inner", F_OK));
    CALL(chdir("absent"));
}

static void descriptors(void) {
    int pair[2];
    char text[100] = {0};
    struct iovec parts[] = {{text, 3}, {text + 50, 20}};
    int file = CALL(open("../file", O_RDONLY));
    CALL(dup(file));
    CALL(dup3(file, 50, O_CLOEXEC));
    CALL(fcntl(50, F_GETFD));
    CALL(dup3(file, file, 0));
    CALL(dup3(file, 51, 7));
    CALL(dup3(99, 51, 0));
    CALL(dup2(file, file));
    CALL(fcntl(file, F_DUPFD, 60));
    CALL(fcntl(file, F_DUPFD_CLOEXEC, 60));
    CALL(fcntl(61, F_GETFD));
    CALL(fcntl(61, F_SETFD, 0));
    CALL(fcntl(61, F_GETFD));
    CALL(fcntl(file, F_GETFL) & O_ACCMODE);
    CALL(fcntl(99, F_GETFL));
    CALL(pread(file, text, 5, 2));
    CALL(pread(file, text, 5, 1000));
    CALL(pread(file, text, 5, -1));
    CALL(pread(99, text, 5, 0));
    CALL(read(file, text, 4));
    CALL(readv(60, parts, 2));
    CALL(lseek(50, 0, SEEK_CUR));
    CALL(lseek(file, -100, SEEK_CUR));
    CALL(lseek(file, 0, 9));
    puts(text);
    CALL(pipe2(pair, O_NONBLOCK | O_CLOEXEC));
    printf("%d %d\n", pair[0], pair[1]);
    CALL(fcntl(pair[0], F_GETFL) & O_NONBLOCK);
    CALL(read(pair[0], text, 1));
    CALL(pread(pair[0], text, 1, 0));
    CALL(lseek(pair[0], 0, SEEK_SET));
    struct pollfd polled[] = {{pair[0], POLLIN, 0}, {pair[1], POLLOUT, 0}, {99, POLLIN, 0}, {-1, POLLIN, 0}};
    struct timespec wait = {0, 1000000};
    CALL(ppoll(polled, 1, &wait, 0));
    CALL(ppoll(polled, 4, 0, 0));
    printf("%d %d %d %d\n", polled[0].revents, polled[1].revents, polled[2].revents, polled[3].revents);
    CALL(write(pair[1], "12345", 5));
    CALL(ppoll(polled, 2, 0, 0));
    CALL(close(pair[1]));
    CALL(read(pair[0], text, 100));
    CALL(read(pair[0], text, 100));
    CALL(ppoll(polled, 1, 0, 0));
    printf("%d\n", polled[0].revents);
    wait.tv_nsec = -1;
    CALL(ppoll(polled, 1, &wait, 0));
    CALL(close(99));
    CALL(close(60));
    CALL(write(60, text, 1));
    CALL(write(file, text, 1));
}

static void process(void) {
    struct timespec wait = {0, 1000}, start, end;
    CALL(clock_gettime(CLOCK_MONOTONIC, &start));
    CALL(nanosleep(&wait, 0));
    CALL(clock_gettime(CLOCK_MONOTONIC, &end));
    CALL((end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec >= 1000);
    wait.tv_nsec = 1000000000;
    CALL(nanosleep(&wait, 0));
    wait.tv_sec = -1;
    CALL(nanosleep(&wait, 0));
    CALL(clock_gettime(10, &start));
    CALL(getpgid(0) == getpgrp());
    CALL(getpgid(getpid()) == getpgid(0));
    CALL(getpgid(-1));
    CALL(getsid(0) > 0);
    CALL(getuid());
    CALL(getegid());
    CALL(getppid() > 0);
    CALL(syscall(SYS_gettid) == getpid());
    cpu_set_t cpus[8];
    CALL(syscall(SYS_sched_getaffinity, 0, 1024, cpus) > 0);
    CALL(CPU_COUNT(cpus) > 0);
    CALL(syscall(SYS_sched_getaffinity, 0, 7, cpus));
    CALL(sched_yield());
    CALL(umask(077));
    CALL(umask(022));
    struct utsname names;
    CALL(uname(&names));
    puts(names.machine);
    struct rlimit limit;
    CALL(getrlimit(RLIMIT_NOFILE, &limit));
    CALL(getrlimit((enum __rlimit_resource)99, &limit));
}

static void signals(void) {
    struct sigaction ignored = {.sa_handler = SIG_IGN}, before;
    CALL(sigaction(SIGUSR1, &ignored, &before));
    CALL(before.sa_handler == SIG_DFL);
    CALL(raise(SIGUSR1));
    CALL(kill(getpid(), SIGUSR1));
    CALL(sigaction(SIGUSR1, 0, &before));
    CALL(before.sa_handler == SIG_IGN);
    CALL(sigaction(SIGKILL, &ignored, 0));
    CALL(sigaction(99, &ignored, 0));
    CALL(raise(SIGCHLD));
    CALL(raise(SIGWINCH));
    CALL(kill(getpid(), 0));
    CALL(kill(getpid(), 99));
    CALL(kill(0x7ffffffe, 0));
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    CALL(sigprocmask(SIG_BLOCK, &set, &old));
    CALL(raise(SIGTERM));
    CALL(sigprocmask(9, &set, 0));
    CALL(sigprocmask(SIG_BLOCK, 0, &old));
    CALL(sigismember(&old, SIGTERM));
    int pair[2];
    CALL(pipe(pair));
    CALL(close(pair[0]));
    signal(SIGPIPE, SIG_IGN);
    CALL(write(pair[1], "x", 1));
    fflush(stdout);
    sigprocmask(SIG_UNBLOCK, &set, 0);
}

int main(void) {
    paths();
    descriptors();
    process();
    signals();
    return 1;
}
"""

UNICORN = """
import sys
from spurtle_sim.emulator.program import Program
program = Program(sys.argv[1])
for _ in program.run():
    pass
sys.exit(program.exit_status)
"""


@needs_compiler
@pytest.mark.full
@pytest.mark.parametrize("qemu", qemu_versions())
def test_results(qemu: Qemu, tmp_path: Path) -> None:
    """Each call that an ordinary static program uses, and the errors of Linux. SIGTERM ends the program."""
    program, work = tmp_path / "program", tmp_path / "work"
    program.with_suffix(".c").write_text(CALLS)
    compilation = [CROSS_COMPILER, "-O1", "-w", "-static", "-o", program, program.with_suffix(".c")]
    subprocess.run(compilation, check=True, capture_output=True)
    (work / "folder" / "inner").mkdir(parents=True)
    (work / "file").write_text("0123456789abcdefghij")
    (work / "link").symlink_to("file")
    expected, found = (
        # getsid() and getpgid() answer 0 for a session that began outside the PID namespace of a container.
        subprocess.run(command, cwd=work, capture_output=True, text=True, check=False, start_new_session=True)
        for command in ([qemu.path, program], [sys.executable, "-c", UNICORN, program])
    )
    assert expected.stdout.count("\n") > 150
    assert found.stdout.splitlines() == expected.stdout.splitlines()
    assert (found.returncode, found.stderr) == (128 - expected.returncode, "")

// Finds the ends of strings by first-fault loads of SVE, next to a page that is not mapped.
#include <arm_sve.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static unsigned long length(const unsigned char *text) {
    svbool_t all = svptrue_b8();
    for (unsigned long done = 0;; ) {
        svsetffr();
        svuint8_t bytes = svldff1(all, text + done);
        svbool_t loaded = svrdffr();
        svbool_t zeros = svcmpeq(loaded, bytes, 0);
        if (svptest_any(all, zeros)) return done + svcntp_b8(all, svbrkb_z(loaded, zeros));
        done += svcntp_b8(all, loaded);
    }
}

int main(void) {
    unsigned char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (munmap(pages + 4096, 4096)) return 1;
    unsigned long sum = 0;
    for (int size = 0; size < 200; size++) {
        unsigned char *text = pages + 4096 - size - 1;
        memset(text, 'a', size);
        text[size] = 0;
        sum += length(text) == (unsigned long)size;
    }
    printf("%lu\n", sum);
    return 0;
}

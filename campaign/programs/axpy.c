// Multiplies and adds vectors of numbers by SVE, with predicates for the last elements.
#include <arm_sve.h>
#include <stdio.h>

static double x[1003], y[1003];

int main(void) {
    for (int i = 0; i < 1003; i++) {
        x[i] = i;
        y[i] = 1003 - i;
    }
    for (int round = 0; round < 10; round++)
        for (long i = 0; i < 1003; i += svcntd()) {
            svbool_t active = svwhilelt_b64(i, 1003L);
            svst1(active, &y[i], svmla_x(active, svld1(active, &y[i]), svld1(active, &x[i]), 0.5));
        }
    double sum = 0;
    for (int i = 0; i < 1003; i++) sum += y[i];
    printf("%.1f\n", sum);
    return 0;
}

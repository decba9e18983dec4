#include <cg_bench.h>

static volatile unsigned long sum;

void burn(long turns);
void other(void);

void burn(long turns) {
    while (turns-- > 0) sum = sum + 1;
}

void other(void) {
    cg_bench_region_begin("burn");
    burn(1000);
    cg_bench_region_end();
}

/* Calls within a region, and within `count`, and as many outside. */
#include <cg_bench.h>
#include <stdio.h>

#ifndef WORDS
#define WORDS 503
#endif

__attribute__((noinline)) static int contains(const char *text, char wanted) {
    int found = 0;
    for (; *text; text++) found += *text == wanted;
    return found;
}

__attribute__((noinline)) static int count(int words) {
    int sum = 0;
    for (int word = 0; word < words; word++) sum += contains("hello", 'l');
    return sum;
}

int main(void) {
    int sum = 0;
    for (int round = 0; round < 3; round++) {
        cg_bench_region_begin("count");
        sum += count(WORDS);
        cg_bench_region_end();
        sum += count(WORDS) + contains("world", 'l');
    }
    printf("%d\n", sum);
    return 0;
}

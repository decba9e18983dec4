/* Reads a million numbers or more from an array, in order or at random, and prints the CPU time of each access in nanoseconds.
 *
 *     sweep linear|random ELEMENTS [PASSES]
 *
 * Only `work` is counted and timed: the array was filled before, so that it lies in the caches as far as it fits. The time is
 * the least of all passes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const uint32_t *array;
static uint64_t elements, accesses, position;
static uint32_t seed = 1;
static int random_order;

__attribute__((noinline)) uint64_t work(void)
{
    uint64_t sum = 0;
    if (random_order)
        for (uint64_t left = accesses; left; left--) {
            seed = seed * 1664525u + 1013904223u;
            sum += array[seed * elements >> 32];
        }
    else
        for (uint64_t left = accesses; left; left--) {
            sum += array[position];
            position = position + 1 == elements ? 0 : position + 1;
        }
    return sum;
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc < 3 || (elements = strtoull(argv[2], NULL, 10)) == 0) {
        fprintf(stderr, "usage: sweep linear|random ELEMENTS [PASSES]\n");
        return 2;
    }
    random_order = !strcmp(argv[1], "random");
    accesses = elements > 1000000 && !random_order ? elements : 1000000;
    int passes = argc > 3 ? atoi(argv[3]) : 1;
    uint32_t *numbers = malloc(elements * sizeof *numbers);
    if (numbers == NULL) {
        perror("sweep");
        return 1;
    }
    for (uint64_t at = 0; at < elements; at++)
        numbers[at] = at;
    array = numbers;
    uint64_t sum = 0;
    double least = 1e9;
    for (int pass = 0; pass < passes; pass++) {
        double before = cpu_seconds();
        sum += work();
        double taken = cpu_seconds() - before;
        if (taken < least)
            least = taken;
    }
    fprintf(stderr, "sum %llu\n", (unsigned long long)sum);
    printf("%.4f\n", least / accesses * 1e9);
    return 0;
}

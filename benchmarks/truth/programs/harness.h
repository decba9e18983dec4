/* Runs one of a file's programs, and prints the least CPU seconds of its passes: `./programs NAME SIZE [PASSES]`.
 *
 * What `prepare` does, and one pass before the others, is neither timed nor counted: only `work` is.
 */
#ifndef HARNESS_H
#define HARNESS_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct program {
    const char *name;
    void (*prepare)(long size);
    uint64_t (*run)(void);
};

static uint32_t harness_seed = 12345;

static inline uint32_t any(void)
{
    harness_seed = harness_seed * 1664525u + 1013904223u;
    return harness_seed >> 8;
}

static inline void *get(size_t bytes)
{
    void *found = calloc(bytes ? bytes : 1, 1);
    if (found == NULL)
        abort();
    return found;
}

#ifdef __cplusplus
extern "C"
#endif
    __attribute__((noinline, noclone)) uint64_t
    work(uint64_t (*run)(void))
{
    return run() + 1;
}

static inline int start(const struct program *programs, size_t count, int argc, char **argv)
{
    const struct program *chosen = NULL;
    for (size_t at = 0; argc > 2 && at < count; at++)
        if (!strcmp(programs[at].name, argv[1]))
            chosen = &programs[at];
    if (chosen == NULL) {
        for (size_t at = 0; at < count; at++)
            fprintf(stderr, "%s\n", programs[at].name);
        return 2;
    }
    chosen->prepare(atol(argv[2]));
    volatile uint64_t sum = chosen->run();
    double least = 1e9;
    for (int left = argc > 3 ? atoi(argv[3]) : 1; left > 0; left--) {
        struct timespec before, after;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
        sum += work(chosen->run);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
        double taken = (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
        if (taken < least)
            least = taken;
    }
    printf("%.9f\n", least);
    return sum == 0;
}
#endif

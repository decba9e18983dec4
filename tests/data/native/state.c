/* What a program with Google Benchmark does, as far as its adapter knows it: options, and the functions of `State` by their
   names in the symbol table. WORK and SETUP, when it is compiled or executed, are how much one iteration and its preparation cost; with
   DEAF it does one, whatever it is asked for, and says so; with
   MEMORY_MANAGER it executes one iteration more in the end, and does not say so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef WORK
#define WORK 1000
#endif
#ifndef SETUP
#define SETUP 5000
#endif
#define NOINLINE __attribute__((noinline))

void _ZN9benchmark5State16StartKeepRunningEv(void);
void _ZN9benchmark5State17FinishKeepRunningEv(void);
void _ZN9benchmark5State11PauseTimingEv(void);
void _ZN9benchmark5State12ResumeTimingEv(void);
NOINLINE void _ZN9benchmark5State16StartKeepRunningEv(void) { __asm__ volatile(""); }
NOINLINE void _ZN9benchmark5State17FinishKeepRunningEv(void) { __asm__ volatile(""); }
NOINLINE void _ZN9benchmark5State11PauseTimingEv(void) { __asm__ volatile(""); }
NOINLINE void _ZN9benchmark5State12ResumeTimingEv(void) { __asm__ volatile(""); }

static volatile long sink;
static long rounds, preparation;

static NOINLINE void work(void) {
    for (long i = 0; i < rounds; i++) sink += i;
}

static NOINLINE void set_up(void) {
    for (long i = 0; i < preparation; i++) sink += i;
}

static long variable(const char *name, long value) {
    const char *text = getenv(name);
    return text == NULL ? value : strtol(text, NULL, 10);
}

static void plain(long iterations) {
    set_up();
    _ZN9benchmark5State16StartKeepRunningEv();
    while (iterations-- > 0) work();
    _ZN9benchmark5State17FinishKeepRunningEv();
}

static void paused(long iterations) {
    _ZN9benchmark5State16StartKeepRunningEv();
    while (iterations-- > 0) {
        _ZN9benchmark5State11PauseTimingEv();
        set_up();
        _ZN9benchmark5State12ResumeTimingEv();
        work();
    }
    _ZN9benchmark5State17FinishKeepRunningEv();
}

/* Its first iteration prepares. */
static void once(long iterations) {
    long ready = 0;
    _ZN9benchmark5State16StartKeepRunningEv();
    while (iterations-- > 0) {
        if (!ready++) set_up();
        work();
    }
    _ZN9benchmark5State17FinishKeepRunningEv();
}

/* What it fills doubles, so iterations are not alike. */
static void grows(long iterations) {
    long used = 0, size = 1, *kept = malloc(sizeof *kept);
    _ZN9benchmark5State16StartKeepRunningEv();
    while (iterations-- > 0) {
        if (used == size) {
            long *more = malloc(2 * size * sizeof *more);
            for (long i = 0; i < used; i++) more[i] = kept[i];
            free(kept);
            kept = more;
            size *= 2;
        }
        work();
        kept[used++] = sink;
    }
    _ZN9benchmark5State17FinishKeepRunningEv();
    free(kept);
}

int main(int count, char **words) {
    static const char *const names[] = {"plain/8", "paused", "once", "grows", "many/threads:2", "twice", "twice"};
    const char *filter = "", *out = "/dev/null";
    long iterations = 1, repetitions = 1;
    int list = 0;
    rounds = variable("WORK", WORK);
    preparation = variable("SETUP", SETUP);
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--benchmark_list_tests") == 0) list = 1;
        if (strncmp(words[i], "--benchmark_filter=", 19) == 0) filter = words[i] + 19;
        if (strncmp(words[i], "--benchmark_min_time=", 21) == 0) iterations = strtol(words[i] + 21, NULL, 10);
        if (strncmp(words[i], "--benchmark_repetitions=", 24) == 0) repetitions = strtol(words[i] + 24, NULL, 10);
        if (strncmp(words[i], "--benchmark_out=", 16) == 0) out = words[i] + 16;
    }
    puts("reading a corpus");
    for (size_t name = 0; list && *filter == 0 && name < sizeof names / sizeof *names; name++) puts(names[name]);
    if (list) return 0;
#ifdef DEAF
    iterations = 1;
#endif
    static void (*const run[])(long) = {plain, paused, once, grows};
    int chosen = 0;
    for (int name = 0; name < 4; name++) {
        if (strncmp(filter + 1, names[name], strlen(names[name])) == 0) chosen = name;
    }
    while (repetitions-- > 0) run[chosen](iterations);
#ifdef MEMORY_MANAGER
    plain(1);
#endif
    FILE *report = fopen(out, "w");
    const char *format = "{\"benchmarks\": [{\"run_name\": \"%s\", \"run_type\": \"iteration\", \"iterations\": %ld}]}";
    fprintf(report, format, names[chosen], iterations);
    return fclose(report);
}

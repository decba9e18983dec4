/* What a program with Google Benchmark does, as far as its adapter knows it: options, and the functions of `State` by their
   names in the symbol table. WORK and SETUP are how much one iteration and its preparation cost; with DEAF it does one, whatever it is asked for, and says so; with
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

static NOINLINE void work(void) {
    for (long i = 0; i < WORK; i++) sink += i;
}

static NOINLINE void set_up(void) {
    for (long i = 0; i < SETUP; i++) sink += i;
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

int main(int count, char **words) {
    static const char *const names[] = {"plain/8", "paused", "many/threads:2", "twice", "twice"};
    const char *filter = "", *out = "/dev/null";
    long iterations = 1, repetitions = 1;
    int list = 0;
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
    const char *name = strcmp(filter, "^plain/8$") == 0 ? "plain/8" : "paused";
    while (repetitions-- > 0) (*name == 'p' && name[1] == 'l' ? plain : paused)(iterations);
#ifdef MEMORY_MANAGER
    plain(1);
#endif
    FILE *report = fopen(out, "w");
    fprintf(report, "{\"benchmarks\": [{\"run_name\": \"%s\", \"run_type\": \"iteration\", \"iterations\": %ld}]}", name, iterations);
    return fclose(report);
}

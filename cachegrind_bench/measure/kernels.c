/* kernels.c: the loops that `cg-bench calibrate` counts and times, each named KIND/VARIANT.
 *
 *     kernels count [NAME]...      enter each as a region, when the caches are warm
 *     kernels time CPU [NAME]...   print the name of each, and the least nanoseconds that one run took of the thread's CPU time
 *
 * A run takes one to ten million instructions. What it finds in the caches is what the run before left there, natively and
 * counted alike; random access goes on where the last run ended, so that no cache and no predictor knows what comes.
 */
#define _GNU_SOURCE
#include <cg_bench.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define K ((size_t)1 << 10)
#define M ((size_t)1 << 20)
#define N (256 * K) /* steps of most kernels */
#define REPEATS 9
#define LINE 64
#define KEEP(value) __asm__ volatile("" : "+r"(value)) /* computed here, as written, and by a branch where there is one */
#define KEEP_MEMORY() __asm__ volatile("" ::: "memory")
#define TIMES(count) for (size_t turn = 0; turn < (count); turn++)
#define PASSES(bytes, step) ((bytes) / (step) >= N ? 1 : N * (step) / (bytes))
#define NOINLINE __attribute__((noinline))

static _Alignas(4096) unsigned char bytes[64 * M];
static uint64_t *const words = (uint64_t *)bytes;
static uint64_t state = 88172645463325252u, place;

static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* All lines of the array once, in an order without a pattern: the period of this generator is any power of two. */
static size_t jump(size_t at, size_t lines) { return (at * 1103515245 + 12345) & (lines - 1); }

static void noise(size_t size) { TIMES(size) bytes[turn] = (unsigned char)(next_random() >> 32); }
static void ascending(size_t size) { TIMES(size) words[turn] = 2 * turn; }
static void linked(size_t size) { TIMES(size / LINE) words[turn * 8] = jump(turn, size / LINE) * 8; }

/* Memory: of this size, from L1 to RAM */
static uint64_t scan(size_t size) {
    uint64_t sum = 0;
    TIMES(PASSES(size, 8)) for (size_t i = 0; i < size / 8; i++) { sum += words[i]; KEEP(sum); }
    return sum;
}
static uint64_t fill(size_t size) {
    TIMES(PASSES(size, 8)) for (size_t i = 0; i < size / 8; i++) { words[i] = turn; KEEP_MEMORY(); }
    return words[1];
}
static uint64_t copy(size_t size) {
    TIMES(PASSES(size, LINE)) { memcpy(bytes + 32 * M, bytes, size); KEEP_MEMORY(); }
    return bytes[32 * M];
}
static uint64_t clear(size_t size) {
    TIMES(PASSES(size, LINE)) { memset(bytes, (int)turn, size); KEEP_MEMORY(); }
    return bytes[0];
}
static uint64_t strided(size_t size, size_t stride) {
    uint64_t sum = 0;
    TIMES(PASSES(size, stride)) for (size_t i = 0; i < size; i += stride) { sum += bytes[i]; KEEP(sum); }
    return sum;
}
static uint64_t stride64(size_t size) { return strided(size, 64); }
static uint64_t stride512(size_t size) { return strided(size, 512); }
static uint64_t stride4160(size_t size) { return strided(size, 4160); }
static uint64_t gather(size_t size) {
    uint64_t sum = 0;
    TIMES(N) { place = jump(place, size / LINE); sum += words[place * 8]; }
    return sum;
}
static uint64_t scatter(size_t size) {
    TIMES(N) { place = jump(place, size / LINE); words[place * 8]++; }
    return words[0];
}
static uint64_t chase(size_t size) {
    place &= size / 8 - 8;
    TIMES(N) place = words[place];
    return place;
}

/* Branches */
static uint64_t branch(size_t size, unsigned limit) {
    uint64_t sum = 0;
    TIMES(size) {
        if (bytes[turn] < limit) { sum += turn; KEEP(sum); }
        else { sum ^= turn; KEEP(sum); }
    }
    return sum;
}
static uint64_t even(size_t size) { return branch(size, 128); }
static uint64_t uneven(size_t size) { return branch(size, 26); }
static uint64_t rare(size_t size) { return branch(size, 3); }
static uint64_t always(size_t size) { return branch(size, 256); }
static uint64_t pattern(size_t size) {
    uint64_t sum = 0;
    TIMES(size) if ((turn % 8) & 2) { sum += turn; KEEP(sum); } else { sum ^= turn; KEEP(sum); }
    return sum;
}
static uint64_t search(size_t size) { /* binary, among so many */
    uint64_t found = 0;
    TIMES(N / 8) {
        uint64_t wanted = next_random() % (2 * size);
        size_t low = 0, high = size;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (words[middle] < wanted) { low = middle + 1; KEEP(low); } else { high = middle; KEEP(high); }
        }
        found += low;
    }
    return found;
}

/* Arithmetic: one chain of dependent operations, or four that are independent */
#define CHAIN(name, type, keep, operation)                                                                                      \
    static uint64_t name##_chain(size_t size) {                                                                                 \
        type a = 3;                                                                                                             \
        TIMES(4 * size) { operation(a); keep(a); }                                                                              \
        return (uint64_t)a;                                                                                                     \
    }                                                                                                                           \
    static uint64_t name##_apart(size_t size) {                                                                                 \
        type a = 3, b = 5, c = 7, d = 9;                                                                                        \
        TIMES(size) { operation(a); operation(b); operation(c); operation(d); keep(a); keep(b); keep(c); keep(d); }             \
        return (uint64_t)(a + b + c + d);                                                                                       \
    }
#define ADD(a) a += turn ^ 5
#define MULTIPLY(a) a *= 0x9E3779B97F4A7C15u
#define DIVIDE(a) a = 0xFFFFFFFFFFFFFFF5u / (a | 1)
#define SHIFT(a) a ^= a << 13, a ^= a >> 7, a ^= a << 17
#define ADD_FLOAT(a) a = a + 1.25
#define MULTIPLY_FLOAT(a) a = a * 1.0000001
#define DIVIDE_FLOAT(a) a = 3.5 / a
CHAIN(add, uint64_t, KEEP, ADD)
CHAIN(multiply, uint64_t, KEEP, MULTIPLY)
CHAIN(divide, uint64_t, KEEP, DIVIDE)
CHAIN(shift, uint64_t, KEEP, SHIFT)
CHAIN(add_float, double, (void), ADD_FLOAT)
CHAIN(multiply_float, double, (void), MULTIPLY_FLOAT)
CHAIN(divide_float, double, (void), DIVIDE_FLOAT)

/* Calls */
static NOINLINE uint64_t one(uint64_t a) { KEEP(a); return a + 1; }
static NOINLINE uint64_t two(uint64_t a) { KEEP(a); return a ^ 2; }
static NOINLINE uint64_t three(uint64_t a) { KEEP(a); return a * 3; }
static NOINLINE uint64_t four(uint64_t a) { KEEP(a); return a - 4; }
static uint64_t (*const volatile targets[])(uint64_t) = {one, two, three, four};
static uint64_t call_direct(size_t size) { uint64_t a = 1; TIMES(size) a = one(a); return a; }
static uint64_t call_same(size_t size) { uint64_t a = 1; TIMES(size) a = targets[1](a); return a; }
static uint64_t call_in_turn(size_t size) { uint64_t a = 1; TIMES(size) a = targets[turn % 4](a); return a; }
static uint64_t call_any(size_t size) { uint64_t a = 1; TIMES(size) a = targets[bytes[turn] % 4](a); return a; }
static NOINLINE uint64_t fibonacci(size_t n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

/* Small programs, where all of it comes together */
static int by_value(const void *a, const void *b) { return (*(const uint64_t *)a > *(const uint64_t *)b) - (*(const uint64_t *)a < *(const uint64_t *)b); }
static uint64_t sort(size_t size) {
    TIMES(size) words[turn] = next_random();
    qsort(words, size, sizeof *words, by_value);
    return words[size / 2];
}
static uint64_t hash(size_t size) { /* counts keys in an open table of so many slots */
    TIMES(N) {
        if (turn % (size / 2) == 0) memset(words, 0, size * 8);
        uint64_t key = next_random() % size + 1;
        size_t slot = (key * 0x9E3779B97F4A7C15u >> 20) & (size - 1);
        while (words[slot] && words[slot] != key) slot = (slot + 1) & (size - 1);
        words[slot] = key;
    }
    return words[1];
}
static uint64_t matrix(size_t n) {
    double *a = (double *)bytes, *b = a + n * n, *c = b + n * n;
    TIMES(2 * n * n) a[turn] = (double)(turn % 7);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
    return (uint64_t)c[n + 1];
}
static uint64_t sieve(size_t size) {
    uint64_t primes = 0;
    memset(bytes, 1, size);
    for (size_t i = 2; i < size; i++)
        if (bytes[i]) {
            primes++;
            for (size_t j = 2 * i; j < size; j += i) bytes[j] = 0;
        }
    return primes;
}
static uint64_t parse(size_t size) { /* numbers, as many as there are in so many bytes */
    uint64_t sum = 0, number = 0;
    TIMES(size) {
        unsigned char letter = bytes[turn] % 16;
        if (letter < 10) number = number * 10 + letter;
        else if (letter < 13) { sum += number; number = 0; KEEP(sum); }
        else sum ^= letter;
    }
    return sum + number;
}
static uint64_t histogram(size_t size) {
    uint64_t *counts = words + 4 * M;
    TIMES(size) counts[bytes[turn]]++;
    return counts[7];
}

/* Text of words and lines, as far as branches go: letters, and a blank now and then. */
static void text(size_t size) { TIMES(size) bytes[turn] = turn % 6 == 5 ? ' ' : (unsigned char)('a' + (turn * 7 + turn / 64) % 26); }
static uint64_t count_words(size_t size) {
    uint64_t found = 0, inside = 0, letters = 0;
    TIMES(size) {
        if (bytes[turn] == ' ') { found += inside; inside = 0; KEEP(found); }
        else { inside = 1; letters += bytes[turn]; KEEP(letters); }
    }
    return found + letters;
}
static uint64_t encode(size_t size) { /* three bytes to four letters */
    unsigned char *to = bytes + 8 * M;
    for (size_t i = 0; i + 3 <= size; i += 3) {
        unsigned three = (unsigned)bytes[i] << 16 | (unsigned)bytes[i + 1] << 8 | bytes[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6) *to++ = bytes[16 * M + (three >> shift & 63)];
    }
    return to[-1];
}
static uint64_t digest(size_t size) { /* four sums that know nothing of each other, as in a fast hash */
    uint64_t a = 1, b = 2, c = 3, d = 4;
    for (size_t i = 0; i + 4 <= size / 8; i += 4) {
        a = (a ^ words[i]) * 0x9E3779B185EBCA87u, b = (b ^ words[i + 1]) * 0xC2B2AE3D27D4EB4Fu;
        c = (c ^ words[i + 2]) * 0x165667B19E3779F9u, d = (d ^ words[i + 3]) * 0x85EBCA77C2B2AE63u;
        a = a << 31 | a >> 33, b = b << 31 | b >> 33, c = c << 31 | c >> 33, d = d << 31 | d >> 33;
    }
    return a ^ b ^ c ^ d;
}
static uint64_t write_numbers(size_t size) {
    unsigned char *to = bytes;
    TIMES(size) {
        unsigned char digits[20], *end = digits;
        for (unsigned number = (unsigned)turn * 977; end == digits || number; number /= 10) *end++ = (unsigned char)('0' + number % 10);
        while (end > digits) *to++ = *--end;
    }
    return to[-1];
}
static uint64_t interpret(size_t size) { /* a loop in the code of a small machine with a stack and counted references */
    static const unsigned char code[] = {0, 1, 2, 0, 3, 4, 1, 2, 5};
    uint64_t stack[8] = {0}, variables[4] = {1, 2, 3, 0}, references[4] = {0}, *top = stack;
    for (size_t at = 0, left = size; left;) {
        switch (code[at++]) {
        case 0: references[1]++, *++top = variables[1]; break;
        case 1: references[2]++, *++top = variables[2]; break;
        case 2: top--, top[0] += top[1], references[1]--, variables[3] = *top--; break;
        case 3: *++top = variables[3] & 255; break;
        case 4: top--, top[0] ^= top[1], variables[2] = *top--; break;
        default: left--, at = 0, top = stack;
        }
        KEEP_MEMORY();
    }
    return variables[3] + references[1];
}
struct item { struct item *next; uint64_t key; uint32_t weight, seen; };
static void list(size_t size) {
    struct item *items = (struct item *)bytes;
    TIMES(size) items[turn] = (struct item){items + (turn + 1) % size, turn * 31 % 97, 3, 0};
}
static uint64_t walk(size_t size) { /* over objects that were made one after the other */
    struct item *item = (struct item *)bytes;
    uint64_t sum = 0;
    TIMES(N) {
        sum += item->key * item->weight + (item->key > 48 ? item->seen : 1);
        item->seen = (uint32_t)sum, item = item->next;
    }
    return sum + size;
}
static uint64_t filter(size_t size) {
    const float *in = (const float *)bytes;
    float *out = (float *)(bytes + 8 * M);
    for (size_t i = 0; i < size; i++) {
        float sum = 0;
        for (size_t k = 0; k < 8; k++) sum += in[i + k] * (float)(k + 1);
        out[i] = sum;
    }
    return (uint64_t)out[1];
}

static const struct kernel {
    const char *name;
    uint64_t (*run)(size_t);
    size_t size;
    void (*prepare)(size_t);
} kernels[] = {
#define SIZES(name, run, prepare)                                                                                               \
    {name "/16K", run, 16 * K, prepare}, {name "/256K", run, 256 * K, prepare}, {name "/2M", run, 2 * M, prepare},              \
        {name "/16M", run, 16 * M, prepare}
    SIZES("scan", scan, 0), {"scan/32M", scan, 32 * M, 0}, SIZES("fill", fill, 0),
    SIZES("gather", gather, 0), {"gather/64M", gather, 64 * M, 0},
    SIZES("scatter", scatter, 0), {"scatter/64M", scatter, 64 * M, 0},
    SIZES("chase", chase, linked), {"chase/64M", chase, 64 * M, linked},
    SIZES("copy", copy, 0), {"copy/512", copy, 512, 0}, {"copy/clear4K", clear, 4 * K, 0}, {"copy/clear1M", clear, M, 0},
    {"stride/64in256K", stride64, 256 * K, 0}, {"stride/64in4M", stride64, 4 * M, 0}, {"stride/64in64M", stride64, 64 * M, 0},
    {"stride/512in4M", stride512, 4 * M, 0}, {"stride/512in64M", stride512, 64 * M, 0},
    {"stride/4160in64M", stride4160, 64 * M, 0},
    {"branch/even", even, 2 * N, noise}, {"branch/uneven", uneven, 2 * N, noise}, {"branch/rare", rare, 2 * N, noise},
    {"branch/always", always, 2 * N, noise}, {"branch/pattern", pattern, 2 * N, 0},
    {"search/1K", search, K, ascending}, {"search/64K", search, 64 * K, ascending},
    {"text/parse", parse, 2 * N, noise},
    {"chain/add", add_chain, N, 0}, {"chain/multiply", multiply_chain, N, 0}, {"chain/shift", shift_chain, N / 2, 0},
    {"chain/add_float", add_float_chain, N, 0}, {"chain/multiply_float", multiply_float_chain, N, 0},
    {"apart/add", add_apart, N, 0}, {"apart/multiply", multiply_apart, N, 0}, {"apart/shift", shift_apart, N / 2, 0},
    {"apart/add_float", add_float_apart, N, 0}, {"apart/multiply_float", multiply_float_apart, N, 0},
    {"divide/chain", divide_chain, N / 4, 0}, {"divide/apart", divide_apart, N / 4, 0},
    {"divide/float_chain", divide_float_chain, N / 4, 0}, {"divide/float_apart", divide_float_apart, N / 4, 0},
    {"call/direct", call_direct, N, 0}, {"call/same", call_same, N, 0}, {"call/in_turn", call_in_turn, N, 0},
    {"call/any", call_any, N, noise}, {"call/fibonacci", fibonacci, 24, 0},
    {"sort/qsort1K", sort, K, 0}, {"sort/qsort8K", sort, 8 * K, 0},
    {"table/hash4K", hash, 4 * K, 0}, {"table/hash128K", hash, 128 * K, 0}, {"table/histogram", histogram, 2 * N, noise},
    {"text/words", count_words, 2 * N, text}, {"text/encode", encode, N, text},
    {"text/digest", digest, 8 * N, 0}, {"text/numbers", write_numbers, 64 * K, 0},
    {"program/interpret", interpret, 64 * K, 0}, {"program/list1K", walk, K, list}, {"program/list16K", walk, 16 * K, list},
    {"matrix/filter", filter, 128 * K, 0}, {"matrix/64", matrix, 64, 0}, {"matrix/128", matrix, 128, 0}, {"matrix/sieve", sieve, 512 * K, 0},
};

static volatile uint64_t result; /* so that nothing is left out */

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t least(const struct kernel *kernel) {
    uint64_t best = UINT64_MAX;
    TIMES(REPEATS) {
        const uint64_t begin = now();
        result = kernel->run(kernel->size);
        const uint64_t took = now() - begin;
        if (took < best) best = took;
    }
    return best;
}

int main(int count, char **words_given) {
    const int timing = count > 2 && strcmp(words_given[1], "time") == 0;
    cpu_set_t cpus;
    if (timing) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody waits for it then */
        CPU_ZERO(&cpus);
        CPU_SET(atoi(words_given[2]), &cpus);
        if (sched_setaffinity(0, sizeof cpus, &cpus)) return perror("sched_setaffinity"), 1;
        memset(bytes, 1, sizeof bytes);
        while (now() < 200000000u) result = next_random(); /* until the clock of the CPU is what it will be */
    }
    TIMES(sizeof kernels / sizeof *kernels) {
        const struct kernel *kernel = kernels + turn;
        int first = timing ? 3 : 2, wanted = first >= count;
        for (int i = first; i < count; i++) wanted |= strcmp(kernel->name, words_given[i]) == 0;
        if (!wanted) continue;
        if (kernel->prepare) kernel->prepare(kernel->size);
        result = kernel->run(kernel->size);
        if (timing) {
            printf("%s %" PRIu64 "\n", kernel->name, least(kernel));
            continue;
        }
        cg_bench_region_begin(kernel->name);
        result = kernel->run(kernel->size);
        cg_bench_region_end();
    }
    return 0;
}

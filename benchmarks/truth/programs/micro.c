/* Small loops that each stress one thing of a processor. */
#include "harness.h"
#include <math.h>

static long n;
static uint64_t *data;
static uint32_t *small;
static double *reals;
static char *from, *to;
static volatile uint64_t one = 1, three = 3;
static volatile double real = 1.0000001;

static void count(long size) { n = size; }
static void bytes(long size)
{
    n = size;
    from = get(size + 64), to = get(size + 64);
    memset(from, 'x', size);
}
static void words(long size)
{
    n = size;
    data = get(8 * size), small = get(4 * size), reals = get(8 * size);
    for (long i = 0; i < size; i++)
        data[i] = any(), small[i] = any(), reals[i] = any() / 1e6 + 1;
}
static void cycle(long size) /* a random cycle through all elements, by Sattolo */
{
    n = size;
    data = get(8 * size);
    for (long i = 0; i < size; i++)
        data[i] = i;
    for (long i = size - 1; i > 0; i--) {
        long j = ((uint64_t)any() << 8 | (any() & 255)) % i;
        uint64_t other = data[i];
        data[i] = data[j], data[j] = other;
    }
}

#define REPEAT(times, statement)                                                                                           \
    for (long i = 0; i < (times); i++) {                                                                                   \
        statement;                                                                                                         \
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));                                                         \
    }
#define INTEGERS(name, statement)                                                                                          \
    static uint64_t name(void)                                                                                             \
    {                                                                                                                      \
        uint64_t a = one, b = three, c = one + 4, d = three + 6, k = three;                                                \
        REPEAT(n, statement)                                                                                               \
        return a + b + c + d + k;                                                                                          \
    }
#define REALS(name, statement)                                                                                             \
    static uint64_t name(void)                                                                                             \
    {                                                                                                                      \
        double a = real, b = real + 1, c = real + 2, d = real + 3, k = real;                                               \
        for (long i = 0; i < n; i++) {                                                                                     \
            statement;                                                                                                     \
            __asm__ volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d));                                                     \
        }                                                                                                                  \
        return (uint64_t)(a + b + c + d + k);                                                                              \
    }
INTEGERS(add_chain, a += k; a += k; a += k; a += k)
INTEGERS(add_free, a += k; b += k; c += k; d += k)
INTEGERS(mul_chain, a *= k; a *= k; a *= k; a *= k)
INTEGERS(mul_free, a *= k; b *= k; c *= k; d *= k)
INTEGERS(div_chain, a = 1000000007 / (a | 1) + k)
INTEGERS(div_free, a = 1000000007 / (k + i); b = 900000011 / (k + i))
INTEGERS(rotate, a = (a << 7 | a >> 57) ^ k; b = (b << 9 | b >> 55) + a)
INTEGERS(popcount, a += __builtin_popcountll(b ^ i); b += k)
REALS(fadd_chain, a += k; a += k; a += k; a += k)
REALS(fadd_free, a += k; b += k; c += k; d += k)
REALS(fmul_chain, a *= k; a *= k; a *= k; a *= k)
REALS(fdiv_chain, a = k / a + 1)
REALS(fdiv_free, a = k / (a + 1); b = k / (b + 1); c = k / (c + 1); d = k / (d + 1))
REALS(root, a = sqrt(a + 2))
REALS(sine, a += sin(b); b += k)

#define BRANCH(name, condition)                                                                                            \
    static uint64_t name(void)                                                                                             \
    {                                                                                                                      \
        uint64_t a = 0, b = 0, c = 0, d = 0;                                                                               \
        for (long i = 0; i < n; i++) {                                                                                     \
            if (condition) {                                                                                               \
                a += 3;                                                                                                    \
                __asm__ volatile("" : "+r"(a), "+r"(b));                                                                   \
            } else {                                                                                                       \
                c ^= 5;                                                                                                    \
                __asm__ volatile("" : "+r"(c), "+r"(d));                                                                   \
            }                                                                                                              \
        }                                                                                                                  \
        return a + b + c + d;                                                                                              \
    }
BRANCH(branch_always, small[i] != 1)
BRANCH(branch_half, small[i] & 4096)
BRANCH(branch_tenth, small[i] % 1024 < 102)
BRANCH(branch_period, i % 4 == 0)

static uint64_t f0(uint64_t x) { return x + 1; }
static uint64_t f1(uint64_t x) { return x ^ 3; }
static uint64_t f2(uint64_t x) { return x * 5; }
static uint64_t f3(uint64_t x) { return x - 7; }
static uint64_t (*volatile functions[])(uint64_t) = {f0, f1, f2, f3};
static uint64_t call_same(void)
{
    uint64_t sum = 0;
    for (long i = 0; i < n; i++)
        sum = functions[1](sum);
    return sum;
}
static uint64_t call_random(void)
{
    uint64_t sum = 0;
    for (long i = 0; i < n; i++)
        sum = functions[small[i] >> 5 & 3](sum);
    return sum;
}
__attribute__((noinline)) static uint64_t fib(long k) { return k < 2 ? 1 : fib(k - 1) + fib(k - 2); }
static uint64_t recursion(void) { return fib(n); }

static uint64_t chase(void)
{
    uint64_t at = 0;
    for (long i = 0; i < 200000; i++)
        at = data[at];
    return at;
}
static uint64_t gather(void)
{
    uint64_t sum = 0;
    uint32_t seed = 1;
    for (long i = 0; i < 200000; i++) {
        seed = seed * 1664525u + 1013904223u;
        sum += data[(uint64_t)seed * n >> 32];
    }
    return sum;
}
static uint64_t stride(void)
{
    uint64_t sum = 0;
    for (long start = 0; start < 8; start++)
        for (long i = start; i < n; i += 8)
            sum += data[i];
    return sum;
}
static uint64_t store(void)
{
    for (long i = 0; i < n; i++) {
        data[i] = i;
        __asm__ volatile("" ::: "memory");
    }
    return data[n - 1];
}
static uint64_t histogram(void)
{
    for (long i = 0; i < n; i++)
        data[small[i] % n]++;
    return data[0];
}
static uint64_t sum_reals(void)
{
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += reals[i] * 1.5;
    return (uint64_t)sum;
}

#define BYTES(name, statement)                                                                                             \
    static uint64_t name(void)                                                                                             \
    {                                                                                                                      \
        for (long left = 16 << 20; left > 0; left -= n) {                                                                  \
            statement;                                                                                                     \
            __asm__ volatile("" ::: "memory");                                                                             \
        }                                                                                                                  \
        return to[n - 1];                                                                                                  \
    }
BYTES(clear, memset(to, 7, n))
BYTES(copy, memcpy(to, from, n))
BYTES(move, memmove(from + 1, from, n))
BYTES(compare, to[n - 1] += memcmp(to + 1, to, n - 2) == 5)
BYTES(length, to[n - 1] += strlen(from) == 5)
static uint64_t grow(void)
{
    char *block = NULL;
    for (long size = 1000; size < n; size += size / 2)
        block = realloc(block, size), block[size - 1] = 1;
    free(block);
    return n;
}
static uint64_t allocate(void)
{
    void *blocks[64];
    for (long i = 0; i < n; i++) {
        for (int k = 0; k < 64; k++)
            blocks[k] = malloc(16 + (k * 37 & 255));
        for (int k = 0; k < 64; k++)
            free(blocks[k]);
    }
    return (uintptr_t)blocks[5];
}

static const struct program programs[] = {
    {"add-chain", count, add_chain}, {"add-free", count, add_free}, {"mul-chain", count, mul_chain},
    {"mul-free", count, mul_free}, {"div-chain", count, div_chain}, {"div-free", count, div_free},
    {"rotate", count, rotate}, {"popcount", count, popcount}, {"fadd-chain", count, fadd_chain},
    {"fadd-free", count, fadd_free}, {"fmul-chain", count, fmul_chain}, {"fdiv-chain", count, fdiv_chain},
    {"fdiv-free", count, fdiv_free}, {"root", count, root}, {"sine", count, sine},
    {"branch-always", words, branch_always}, {"branch-half", words, branch_half}, {"branch-tenth", words, branch_tenth},
    {"branch-period", words, branch_period}, {"call-same", count, call_same}, {"call-random", words, call_random},
    {"recursion", count, recursion}, {"chase", cycle, chase}, {"gather", words, gather}, {"stride", words, stride},
    {"store", words, store}, {"histogram", words, histogram}, {"sum", words, sum_reals}, {"clear", bytes, clear},
    {"copy", bytes, copy}, {"move", bytes, move}, {"compare", bytes, compare}, {"length", bytes, length},
    {"grow", count, grow}, {"allocate", count, allocate},
};

int main(int argc, char **argv) { return start(programs, sizeof programs / sizeof *programs, argc, argv); }

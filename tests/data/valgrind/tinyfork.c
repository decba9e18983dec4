/* No libc: a very small program that forks. Parent: 1000 rounds, fork, 10 rounds; child: 100 rounds; then both exit. */
static volatile unsigned long sum = 1; /* in .data: without a writable segment Valgrind reads no names */

static long call(long number, long a, long b, long c, long d)
{
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}

#include "inlined.h"

__attribute__((noinline)) void burn_parent(long n) { for (long i = 0; i < n; i++) sum += twice(i); }
__attribute__((noinline)) void burn_child(long n) { for (long i = 0; i < n; i++) sum += i; }
__attribute__((noinline)) int fork(void) { return (int)call(57, 0, 0, 0, 0); }
__attribute__((noinline)) long recurse(long n) { return n < 2 ? n : recurse(n - 1) + recurse(n - 2); }

void _start(void)
{
    burn_parent(1000);
    long pid = fork();
    if (pid == 0) {
        burn_child(100);
        call(60, 0, 0, 0, 0);
    }
    call(61, pid, 0, 0, 0);
    burn_parent(10);
    call(60, (long)recurse(6) & 0, 0, 0, 0);
}

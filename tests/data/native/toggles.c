/* What --toggle does with calls of every kind. burn(1000) is 3,000 instructions and a few with -O2. */
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>

#define KEEP __attribute__((noinline, noclone))

static volatile unsigned long sum;
static jmp_buf back;

KEEP void burn(long turns) {
    __asm__ volatile("1: nop; dec %0; jnz 1b" : "+r"(turns) : : "cc"); /* GCC 14 would unroll a loop in C */
}
KEEP void leaf(void) {
    burn(1000);
    sum = sum + 1;
}
KEEP void outer(void) {
    leaf();
    leaf();
    sum = sum + 2;
}
KEEP void recursive(int depth) {
    burn(1000);
    if (depth > 0) recursive(depth - 1);
    sum = sum + 3;
}
KEEP void ping(int depth);
KEEP void pong(int depth) {
    burn(1000);
    if (depth > 0) ping(depth - 1);
    sum = sum + 4;
}
void ping(int depth) {
    burn(1000);
    if (depth > 0) pong(depth - 1);
    sum = sum + 5;
}
KEEP void tail(void) {
    sum = sum + 6;
    burn(1000); /* a jump, not a call, from -O2 on */
}
KEEP static void local(void) {
    burn(1000);
    sum = sum + 7;
}
static inline void inlined(void) {
    for (int i = 0; i < 1000; i++) sum = sum + 8;
}
KEEP void jumping(void) {
    burn(1000);
    longjmp(back, 1);
}
static void *work(void *nothing) {
    burn(1000);
    sum = sum + 9;
    return nothing;
}
KEEP void starting(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    burn(10);
}
KEEP void same_as_twin(void) {
    burn(500);
    sum = sum + 10;
}
KEEP void twin(void) {
    burn(500);
    sum = sum + 10;
}

int main(void) {
    outer();
    recursive(9);
    ping(9);
    tail();
    local();
    inlined();
    if (setjmp(back) == 0) jumping();
    starting();
    same_as_twin();
    twin();
    burn(50000);
    return 0;
}

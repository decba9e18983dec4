/* A program whose functions are called as often, and cost as much, as the compiler is told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef WORDS
#define WORDS 503
#endif
#ifndef ROUNDS
#define ROUNDS 3
#endif
#ifndef ROW
#define ROW 4000
#endif
#ifndef DEPTH
#define DEPTH 12
#endif

__attribute__((noinline)) static int contains(const char *text, char wanted) {
    int found = 0;
    for (; *text; text++)
        for (int round = 0; round < ROUNDS; round++) found += *text == wanted + round;
    return found;
}

__attribute__((noinline)) static int count(void) {
    int sum = 0;
    for (int word = 0; word < WORDS; word++) sum += contains("hello", 'l');
    return sum;
}

__attribute__((noinline)) static int fill(void) {
    char *row = malloc(ROW);
    if (row == NULL) abort();
    memset(row, 1, ROW);
    int last = *(volatile char *)(row + ROW - 1);
    free(row);
    return last;
}

__attribute__((noinline)) static int fib(int number) {
    return number < 2 ? number : fib(number - 1) + fib(number - 2);
}

int main(void) {
    int sum = count() + fib(DEPTH);
    for (int row = 0; row < 20; row++) sum += fill();
    printf("%d\n", sum);
    return 0;
}

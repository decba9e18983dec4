/* Counts the words of a text that it makes up: what docs/side-by-side.md compares, before and after slower.patch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline)) static

struct word {
    char text[8];
    long times;
    struct word *next;
};

static struct word *table[4096];

APART unsigned hash(const char *text) {
    unsigned sum = 5381;
    while (*text)
        sum = sum * 33 ^ (unsigned)*text++;
    return sum % 4096;
}

APART struct word *find(const char *text) {
    struct word *at = table[hash(text)];
    while (at && memcmp(at->text, text, sizeof at->text))
        at = at->next;
    return at;
}

APART struct word *add(const char *text) {
    struct word **place = &table[hash(text)], *made = calloc(1, sizeof *made);
    memcpy(made->text, text, sizeof made->text);
    made->next = *place;
    return *place = made;
}

APART void count(const char *text) {
    struct word *known = find(text);
    if (!known)
        known = add(text);
    known->times++;
}

APART unsigned long mix(unsigned long seed) {
    for (int step = 0; step < 12; step++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    return seed;
}

APART unsigned long make_up(char *text, unsigned long seed) {
    memset(text, 0, 8);
    for (int at = 0; at < 6; at++) {
        seed = mix(seed);
        text[at] = "abcdef"[at < 4 ? seed % 6 : 0];
    }
    return seed;
}

int main(int argc, char **argv) {
    unsigned long seed = 88172645463325252;
    char text[8];
    for (long words = argc > 1 ? atol(argv[1]) : 1000; words > 0; words--) {
        seed = make_up(text, seed);
        count(text);
    }
    long most = 0;
    for (int at = 0; at < 4096; at++)
        for (struct word *word = table[at]; word; word = word->next)
            most = word->times > most ? word->times : most;
    printf("%ld\n", most);
    return 0;
}

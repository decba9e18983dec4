/* Counts the words of a made-up text in a hash table and sorts them. Tests compile it with a larger PLANTED, which makes
   `hash` slower, and nothing else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLANTED 0
#define WORDS 12000
#define SLOTS 4096

struct entry {
    char text[16];
    unsigned count;
};

static struct entry table[SLOTS];

static unsigned next_number(void) {
    static unsigned state = 1;
    return (state = state * 1103515245u + 12345u) >> 8;
}

/* Never inlined: its name has to be in the profile. The empty assembly keeps the loop from being unrolled or folded. */
__attribute__((noinline)) static unsigned long hash(const char *word) {
    unsigned long value = 5381;
    int turns = PLANTED;
    __asm__ volatile("" : "+r"(turns));
    for (; *word; word++) value = value * 33 + (unsigned char)*word;
    for (; turns > 0; turns--) __asm__ volatile("" : "+r"(value));
    return value;
}

__attribute__((noinline)) static void make_word(char *word) {
    unsigned number = next_number() % 2500;
    int length = 0;
    do {
        word[length++] = 'a' + number % 26;
        number = number / 26 * 7 + (number > 25);
    } while (number > 6 && length < 12);
    word[length] = 0;
}

__attribute__((noinline)) static void count(const char *word) {
    unsigned long slot = hash(word) % SLOTS;
    while (table[slot].count && strcmp(table[slot].text, word)) slot = (slot + 1) % SLOTS;
    if (!table[slot].count++) strcpy(table[slot].text, word);
}

static int by_count_then_text(const void *left, const void *right) {
    const struct entry *a = left, *b = right;
    if (a->count != b->count) return a->count < b->count ? 1 : -1;
    return strcmp(a->text, b->text);
}

/* Work that has nothing to do with words. */
__attribute__((noinline)) static double smooth(double *values, int length, int rounds) {
    for (int round = 0; round < rounds; round++)
        for (int i = 1; i < length - 1; i++) values[i] = (values[i - 1] + 2 * values[i] + values[i + 1]) / 4;
    return values[length / 2];
}

int main(void) {
    char word[16];
    static double values[4000];
    for (int i = 0; i < WORDS; i++) {
        make_word(word);
        count(word);
    }
    qsort(table, SLOTS, sizeof *table, by_count_then_text);
    for (int i = 0; i < 4000; i++) values[i] = next_number() % 1000;
    printf("%s %u %.3f\n", table[0].text, table[0].count, smooth(values, 4000, 1000));
    return 0;
}

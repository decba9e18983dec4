// Algorithms of known growth: ./programs NAME SIZE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN __attribute__((noinline)) static

OWN unsigned next(unsigned *state) {
    *state = *state * 1103515245u + 12345u;
    return *state >> 8;
}

OWN int *numbers(int n) {
    int *found = malloc(n * sizeof *found);
    unsigned state = 1;
    for (int i = 0; i < n; i++) found[i] = next(&state);
    return found;
}

OWN long insertion_sort(int n) {
    int *a = numbers(n);
    for (int i = 1; i < n; i++) {
        int value = a[i], j = i;
        for (; j > 0 && a[j - 1] > value; j--) a[j] = a[j - 1];
        a[j] = value;
    }
    return a[n / 2];
}

OWN void merge(int *a, int *b, int low, int high) {
    if (high - low < 2) return;
    int middle = low + (high - low) / 2;
    merge(a, b, low, middle);
    merge(a, b, middle, high);
    for (int i = low, j = middle, k = low; k < high; k++) b[k] = j >= high || (i < middle && a[i] <= a[j]) ? a[i++] : a[j++];
    memcpy(a + low, b + low, (high - low) * sizeof *a);
}

OWN long merge_sort(int n) {
    int *a = numbers(n), *b = malloc(n * sizeof *b);
    merge(a, b, 0, n);
    return a[n / 2];
}

OWN void quick(int *a, int low, int high) {
    if (high - low < 2) return;
    int last = low;
    for (int i = low + 1; i < high; i++)
        if (a[i] < a[low]) {
            int other = a[++last];
            a[last] = a[i];
            a[i] = other;
        }
    int pivot = a[low];
    a[low] = a[last];
    a[last] = pivot;
    quick(a, low, last);
    quick(a, last + 1, high);
}

OWN long quick_sort(int n) {
    int *a = numbers(n);
    quick(a, 0, n);
    return a[n / 2];
}

OWN long quick_sort_sorted(int n) {
    int *a = malloc(n * sizeof *a);
    for (int i = 0; i < n; i++) a[i] = i;
    quick(a, 0, n);
    return a[n / 2];
}

OWN void sift(int *a, int at, int n) {
    for (int child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && a[child + 1] > a[child]) child++;
        if (a[at] >= a[child]) return;
        int other = a[at];
        a[at] = a[child];
        a[child] = other;
    }
}

OWN long heap_sort(int n) {
    int *a = numbers(n);
    for (int i = n / 2; i-- > 0;) sift(a, i, n);
    for (int last = n; last-- > 1;) {
        int other = a[0];
        a[0] = a[last];
        a[last] = other;
        sift(a, 0, last);
    }
    return a[n / 2];
}

OWN long binary_search(int n) { // of the numbers 0, 2, 4, ..., which no memory has to hold
    long sum = 0;
    unsigned state = 1;
    for (int i = 0; i < 2000; i++) {
        long wanted = next(&state) % (2u * n), low = 0, high = n;
        while (low < high) {
            long middle = (low + high) / 2;
            if (2 * middle < wanted) low = middle + 1;
            else high = middle;
        }
        sum += low;
    }
    return sum;
}

struct entry { struct entry *next; unsigned key; };

OWN long chained(int n, unsigned buckets) {
    struct entry **table = calloc(buckets, sizeof *table);
    long found = 0;
    for (unsigned key = 0; key < (unsigned)n; key++) {
        struct entry **at = &table[key * 2654435761u % buckets];
        for (struct entry *it = *at; it; it = it->next) found += it->key == key;
        struct entry *made = malloc(sizeof *made);
        *made = (struct entry){*at, key};
        *at = made;
    }
    return found;
}

OWN long hash_lookups(int n) { return chained(n, 2 * n + 1); }
OWN long hash_one_bucket(int n) { return chained(n, 1); }

OWN long string_append(int n) {
    char *text = calloc(n + 1, 1);
    for (int i = 0; i < n; i++) {
        char *end = text;
        while (*end) end++; // as a simple strcat does
        *end = 'x';
    }
    return text[n - 1];
}

OWN long matrix_product(int n) {
    double *a = malloc(n * n * sizeof *a), *b = malloc(n * n * sizeof *b), sum = 0;
    for (int i = 0; i < n * n; i++) a[i] = i, b[i] = n - i;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
    return (long)sum;
}

OWN long nested_early_end(int n) {
    long steps = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (++steps % 7 == 0) break;
    return steps;
}

OWN long nested_loops(int n) {
    volatile long steps = 0;
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++) steps++;
    return steps;
}

OWN long trial_division(int n) { // a prime's divisors are tried up to its root
    long steps = 0;
    for (int i = 0; i < n; i++)
        for (long d = 2; d * d <= n; d++) steps += d ^ i;
    return steps;
}

OWN long pairs_in_table(int n) { // each pair's sum is searched among n
    long found = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            int low = 0, high = n;
            while (low < high) {
                int middle = (low + high) / 2;
                if (middle < (i * 31 + j * 17) % n) low = middle + 1;
                else high = middle;
            }
            found += low;
        }
    return found;
}

OWN long fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

OWN long subset_sums(int n) {
    long found = 0;
    for (long set = 0; set < 1L << n; set++) found += (set * 2654435761u) % 1000 == 7;
    return found;
}

OWN long constant(int n) {
    long sum = n;
    for (volatile int i = 0; i < 100000; i++) sum += i;
    return sum;
}

OWN long sieve(int n) {
    char *composite = calloc(n, 1);
    long primes = 0;
    for (long i = 2; i < n; i++) {
        if (composite[i]) continue;
        primes++;
        for (long j = i * i; j < n; j += i) composite[j] = 1;
    }
    return primes;
}

static const struct { const char *name; long (*run)(int); } PROGRAMS[] = {
    {"insertion_sort", insertion_sort}, {"merge_sort", merge_sort}, {"quick_sort", quick_sort},
    {"quick_sort_sorted", quick_sort_sorted}, {"heap_sort", heap_sort}, {"binary_search", binary_search},
    {"hash_lookups", hash_lookups}, {"hash_one_bucket", hash_one_bucket}, {"string_append", string_append},
    {"matrix_product", matrix_product}, {"nested_early_end", nested_early_end}, {"nested_loops", nested_loops},
    {"trial_division", trial_division}, {"pairs_in_table", pairs_in_table}, {"fibonacci", fibonacci},
    {"subset_sums", subset_sums}, {"constant", constant}, {"sieve", sieve},
};

int main(int count, char **words) {
    for (unsigned i = 0; count == 3 && i < sizeof PROGRAMS / sizeof *PROGRAMS; i++)
        if (!strcmp(words[1], PROGRAMS[i].name)) return printf("%ld\n", PROGRAMS[i].run(atoi(words[2]))) < 0;
    return 2;
}

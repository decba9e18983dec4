/* The sieve of Eratosthenes: regular strides through memory, larger than the first-level cache.
 *
 *     cc -O2 -g -o examples/c/sieve examples/c/sieve.c
 *     cg-bench run --id sieve -- examples/c/sieve 2000000
 */
#include <stdio.h>
#include <stdlib.h>

static long count_primes(unsigned char *composite, long limit)
{
    long count = 0;
    for (long n = 2; n <= limit; n++) {
        if (composite[n])
            continue;
        count++;
        if (n <= limit / n)
            for (long multiple = n * n; multiple <= limit; multiple += n)
                composite[multiple] = 1;
    }
    return count;
}

int main(int argc, char **argv)
{
    long limit = argc > 1 ? atol(argv[1]) : 2000000;
    if (limit < 2) {
        fprintf(stderr, "usage: sieve [LIMIT], with LIMIT at least 2\n");
        return 2;
    }
    unsigned char *composite = calloc((size_t)limit + 1, 1);
    if (composite == NULL) {
        perror("sieve");
        return 1;
    }
    printf("%ld primes up to %ld\n", count_primes(composite, limit), limit);
    free(composite);
    return 0;
}

/* A table that leaves one way free in half of the sets of the D1 cache, and none in the others: where the array on the
   stack lies decides whether both fit in. */
static volatile char table[7 * 4096 + 2048] __attribute__((aligned(4096)));
int main(void) {
    volatile char local[1024];
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < (int)sizeof table; i += 64) table[i];
        for (int i = 0; i < (int)sizeof local; i += 64) local[i] = 1;
    }
    return 0;
}

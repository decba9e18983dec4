/* An example of a benchmark: put in its place what your project should do quickly.
 *
 *     cg-bench run
 */
#include <stdio.h>

#define COUNT 4096

int main(void)
{
    static unsigned values[COUNT];
    unsigned state = 1;
    unsigned long sum = 0;
    int round, i;

    for (round = 0; round < 500; round++)
        for (i = 0; i < COUNT; i++) {
            state = state * 1664525u + 1013904223u;
            values[state >> 20] += state >> 24;
        }
    for (i = 0; i < COUNT; i++)
        sum += values[i];
    printf("%lu\n", sum);
    return 0;
}

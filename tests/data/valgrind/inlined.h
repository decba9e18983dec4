/* Inlined into tinyfork.c, so that Callgrind writes fi= and fe= lines. */
static inline __attribute__((always_inline)) long twice(long n)
{
    sum ^= n;
    return n + n;
}

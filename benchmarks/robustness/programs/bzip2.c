/* bzip2: compress a made-up text, and decompress it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bzlib.h"

static const char *words[] = {"one", "another", "text", "of", "words", "that", "repeat,", "as", "they do.\n", "42"};

int main(void) {
    static char text[24000], packed[30000], again[24000];
    unsigned size = 0, packed_size = sizeof packed, again_size = sizeof again, seed = 1, sum = 0;
    while (size < sizeof text - 20) {
        const char *word = words[((seed = seed * 1103515245u + 12345u) >> 16) % 10];
        size += (unsigned)sprintf(text + size, "%s ", word);
    }
    if (BZ2_bzBuffToBuffCompress(packed, &packed_size, text, size, 1, 0, 0) != BZ_OK ||
        BZ2_bzBuffToBuffDecompress(again, &again_size, packed, packed_size, 0, 0) != BZ_OK) {
        fprintf(stderr, "bzip2 could not compress or decompress the text\n");
        return 1;
    }
    for (unsigned i = 0; i < packed_size; i++) sum = sum * 31 + (unsigned char)packed[i];
    printf("%u %u %u %d\n", size, packed_size, sum, memcmp(text, again, size));
    return 0;
}

/* LZ4: compress a made-up text, quickly and well, and decompress it. */
#include <stdio.h>
#include <string.h>
#include "lz4.h"
#include "lz4hc.h"

static const char *words[] = {"one", "another", "text", "of", "words", "that", "repeat,", "as", "they do.\n", "42"};

int main(void) {
    static char text[30000], packed[40000], again[30000];
    unsigned seed = 1, sum = 0;
    int size = 0;
    while (size < (int)sizeof text - 20) {
        const char *word = words[((seed = seed * 1103515245u + 12345u) >> 16) % 10];
        size += sprintf(text + size, "%s ", word);
    }
    for (int round = 0; round < 8; round++) {
        int packed_size = round % 4 ? LZ4_compress_default(text, packed, size, sizeof packed)
                                    : LZ4_compress_HC(text, packed, size, sizeof packed, 9);
        int again_size = LZ4_decompress_safe(packed, again, packed_size, sizeof again);
        if (again_size != size || memcmp(text, again, (size_t)size) != 0) {
            fprintf(stderr, "LZ4 could not compress or decompress the text\n");
            return 1;
        }
        for (int i = 0; i < packed_size; i++) sum = sum * 31 + (unsigned char)packed[i];
    }
    printf("%d %u\n", size, sum);
    return 0;
}

// Snappy: compress a made-up text, and decompress it.
#include <cstdio>
#include <string>
#include "snappy.h"

static const char *words[] = {"one", "another", "text", "of", "words", "that", "repeat,", "as", "they do.\n", "42"};

int main() {
    std::string text, packed, again;
    unsigned seed = 1, sum = 0;
    while (text.size() < 100000) text.append(words[((seed = seed * 1103515245u + 12345u) >> 16) % 10]).append(" ");
    for (int round = 0; round < 4; round++) {
        snappy::Compress(text.data(), text.size(), &packed);
        if (!snappy::Uncompress(packed.data(), packed.size(), &again) || again != text) {
            std::fprintf(stderr, "Snappy could not compress or decompress the text\n");
            return 1;
        }
        for (char c : packed) sum = sum * 31 + static_cast<unsigned char>(c);
    }
    std::printf("%zu %zu %u\n", text.size(), packed.size(), sum);
}

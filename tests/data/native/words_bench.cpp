// A small benchmark with Google Benchmark: what docs/regions.md says of such programs is tested with it.
#include <benchmark/benchmark.h>

#include <map>
#include <sstream>
#include <string>

// Without `noinline` there is no function to name.
__attribute__((noinline)) std::map<std::string, int> parse_words(const std::string &text) {
    std::map<std::string, int> words;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) words[word]++;
    return words;
}

static std::string text() {
    std::string all;
    for (int i = 0; i < 50; i++) all += "to be or not to be ";
    return all;
}

static void BM_words(benchmark::State &state) {
    const std::string all = text();
    for (auto _ : state) benchmark::DoNotOptimize(parse_words(all));
}
BENCHMARK(BM_words);

static void BM_fixed(benchmark::State &state) {
    const std::string all = text();
    for (auto _ : state) benchmark::DoNotOptimize(parse_words(all));
}
BENCHMARK(BM_fixed)->Iterations(20);

BENCHMARK_MAIN();

// A small benchmark with Google Benchmark: what docs/regions.md and docs/harnesses.md say of such programs is tested with it.
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

// What is not one row of the console for each repetition, with the number of iterations that was asked for.
static void BM_batch(benchmark::State &state) {
    const std::string all = text();
    while (state.KeepRunningBatch(10))
        for (int i = 0; i < 10; i++) benchmark::DoNotOptimize(parse_words(all));
}
BENCHMARK(BM_batch)->ReportAggregatesOnly();
BENCHMARK(BM_batch)->Name("[three] {times} ")->Repetitions(3)->ReportAggregatesOnly();

static void BM_unfit(benchmark::State &state) { state.SkipWithError("no \"corpus\""); }
BENCHMARK(BM_unfit);

static void BM_wrong(benchmark::State &state) {
    for (auto _ : state) benchmark::DoNotOptimize(text());
    state.SkipWithError("wrong result");
}
BENCHMARK(BM_wrong);

BENCHMARK_MAIN();

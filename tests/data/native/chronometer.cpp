// What a program with benchmarks of Catch2 calls and prints, without the library, which takes half a minute to compile.

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

static int number(char const *name) {
    char const *text = std::getenv(name);
    return text ? std::atoi(text) : 1000;
}

__attribute__((noinline)) int work(int rounds) {
    int volatile sum = 0;
    for (int i = 0; i < rounds; ++i) sum = sum ^ i;
    return sum;
}

namespace Catch { namespace Benchmark { namespace Detail {
template <typename Clock> struct ChronometerModel {
    __attribute__((noinline)) virtual void start() { started = 1; }
    __attribute__((noinline)) virtual void finish() { finished = 1; }
    int volatile started = 0, finished = 0;
};
}}} // namespace Catch::Benchmark::Detail

struct steady_clock {};
struct Benchmark { char const *name; int rounds; bool grows; };
struct Case { char const *name, *escaped; std::vector<Benchmark> benchmarks; };

int main(int argc, char **argv) {
    std::string chosen, out;
    int samples = 100;
    for (int i = 1; i < argc; ++i) {
        std::string word = argv[i];
        if (word == "--help") return 0;
        if (word == "--out") out = argv[++i];
        else if (word == "--benchmark-samples") samples = std::atoi(argv[++i]);
        else if (word == "--reporter" || word == "--benchmark-warmup-time") ++i;
        else if (word[0] != '-') chosen = word;
    }
    std::vector<Case> const cases = {
        {"a test", "a test", {}},
        {"sums, all of [them]", "sums\\, all of \\[them\\]",
         {{"small", 100}, {"work", number("WORK")}, {"twice", 1}, {"twice", 2}, {"grows", number("WORK"), true}}},
        {"alone", "alone", {{"work & rest", 500}}},
        {"throws", "throws", {{"thrown", 100}}},
    };
    std::ofstream report(out);
    report << "<Catch>";
    for (Case const &each : cases) {
        bool const hidden = !each.benchmarks.empty();
        if (!(chosen == each.escaped || (chosen == "[!benchmark]" && hidden) || (chosen.empty() && !hidden))) continue;
        report << "<TestCase name=\"" << each.name << "\">";
        bool const throws = each.name == std::string("throws");
        std::vector<int> kept;
        for (Benchmark const &one : each.benchmarks) {
            Catch::Benchmark::Detail::ChronometerModel<steady_clock> model;
            Catch::Benchmark::Detail::ChronometerModel<steady_clock> *volatile meter = &model;
            for (int i = 0; i <= samples; ++i) {
                work(number("SETUP"));
                if (throws) break;
                meter->start();
                if (one.grows) {
                    if (kept.empty()) work(number("SETUP"));
                    kept.push_back(i);
                }
                work(one.rounds);
                meter->finish();
            }
            std::string const name = one.name;
            report << "<Section><BenchmarkResults name=\""
                   << (name == "work & rest" ? "work &amp; rest" : name) << "\">"
                   << (throws ? "<failed message=\"no corpus\"/>" : "") << "</BenchmarkResults></Section>";
        }
        report << "<OverallResult success=\"true\"/></TestCase>";
    }
    if (chosen == "[!benchmark]")
        report << "<TestCase name=\"skips\"><Skip>no network</Skip><OverallResult success=\"true\" skips=\"1\"/></TestCase>";
    report << "</Catch>";
}

// Programs in C++ that live by its library.
#include "harness.h"
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

static std::vector<int> numbers;
static std::vector<std::string> words;

static void fill(long size)
{
    numbers.resize(size), words.resize(size);
    for (auto &number : numbers)
        number = any();
    for (auto &word : words)
        word = "w" + std::to_string(any() % (1 + any() % 3000)) + (any() % 3 ? "" : " of a longer name than fits");
}
static uint64_t sort_standard() { auto copy = numbers; std::sort(copy.begin(), copy.end()); return copy[copy.size() / 2]; }
static uint64_t sort_stable() { auto copy = numbers; std::stable_sort(copy.begin(), copy.end()); return copy[copy.size() / 2]; }
static uint64_t sort_strings() { auto copy = words; std::sort(copy.begin(), copy.end()); return copy[copy.size() / 2].size(); }
static uint64_t map_ordered() { std::map<int, int> map; for (int number : numbers) map[number % 5000]++; return map.size(); }
static uint64_t map_hashed() { std::unordered_map<int, int> map; for (int number : numbers) map[number]++; return map.size(); }
static uint64_t map_words()
{
    std::unordered_map<std::string, int> map;
    for (const auto &word : words)
        map[word]++;
    return map.size();
}
static uint64_t set_words() { std::set<std::string> set(words.begin(), words.end()); return set.size(); }
static uint64_t join_words() { std::string all; for (const auto &word : words) all += word, all += ' '; return all.size(); }
static uint64_t stream_out() { std::ostringstream out; for (int number : numbers) out << number << ' ' << 0.5 * number << '\n'; return out.str().size(); }
static std::string written;
static void write(long size) { fill(size); for (int number : numbers) written += std::to_string(number) + ' '; }
static uint64_t stream_in() { std::istringstream in(written); uint64_t sum = 0; for (int value; in >> value;) sum += value; return sum; }
static uint64_t split() { std::vector<std::string> parts; std::string part; for (std::istringstream in(written); std::getline(in, part, ' ');) parts.push_back(part); return parts.size(); }
static uint64_t match() { static const std::regex pattern("w[0-9]*7 of"); uint64_t found = 0; for (const auto &word : words) found += std::regex_search(word, pattern); return found; }
struct Shape { virtual ~Shape() = default; virtual double area() const = 0; };
struct Square : Shape { double a; explicit Square(double a) : a(a) {} double area() const override { return a * a; } };
struct Circle : Shape { double r; explicit Circle(double r) : r(r) {} double area() const override { return 3.14 * r * r; } };
struct Bar : Shape { double a, b; Bar(double a, double b) : a(a), b(b) {} double area() const override { return a * b; } };
static std::vector<std::unique_ptr<Shape>> all;
static void shape(long size)
{
    for (long i = 0; i < size; i++)
        switch (any() % 3) {
        case 0: all.emplace_back(new Square(i)); break;
        case 1: all.emplace_back(new Circle(i)); break;
        default: all.emplace_back(new Bar(i, 2));
        }
}
static uint64_t shapes() { double sum = 0; for (const auto &one : all) sum += one->area(); return static_cast<uint64_t>(sum); }
static uint64_t heap() { std::priority_queue<int> queue; uint64_t sum = 0; for (int number : numbers) { queue.push(number); if (queue.size() > 1000) sum += queue.top(), queue.pop(); } return sum; }
static uint64_t ring() { std::deque<int> queue; uint64_t sum = 0; for (int number : numbers) { queue.push_back(number); if (queue.size() > 500) sum += queue.front(), queue.pop_front(); } return sum; }
static uint64_t push() { std::vector<int> made; for (int number : numbers) if (number & 3) made.push_back(number); return made.size(); }
struct Item { std::string name; std::shared_ptr<Item> next; int value; };
static uint64_t shared() { std::shared_ptr<Item> first; for (int number : numbers) { first = std::make_shared<Item>(Item{"", number & 127 ? first : nullptr, number}); } uint64_t sum = 0; for (auto at = first; at; at = at->next) sum += at->value; return sum; }
static uint64_t records()
{
    struct Record { std::string name; int a; double b; };
    std::vector<Record> rows;
    for (size_t i = 0; i < words.size(); i++)
        rows.push_back({words[i], numbers[i], numbers[i] * 0.5});
    std::sort(rows.begin(), rows.end(), [](const Record &x, const Record &y) { return x.name != y.name ? x.name < y.name : x.a < y.a; });
    return rows[5].a;
}

static const program programs[] = {
    {"sort", fill, sort_standard}, {"sort-stable", fill, sort_stable}, {"sort-strings", fill, sort_strings},
    {"map", fill, map_ordered}, {"map-hashed", fill, map_hashed}, {"map-words", fill, map_words}, {"set", fill, set_words},
    {"join", fill, join_words}, {"stream-out", fill, stream_out}, {"stream-in", write, stream_in}, {"split", write, split},
    {"regex", fill, match}, {"virtual", shape, shapes}, {"heap", fill, heap}, {"ring", fill, ring}, {"push", fill, push},
    {"shared", fill, shared}, {"records", fill, records},
};

int main(int argc, char **argv) { return start(programs, sizeof programs / sizeof *programs, argc, argv); }

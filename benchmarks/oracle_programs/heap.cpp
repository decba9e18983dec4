// The standard library's containers, exceptions and streams.
#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

int main()
{
    std::map<std::string, int> tree;
    std::unordered_map<std::string, std::vector<int>> table;
    for (int i = 0; i < 3000; i++) {
        std::string word = "word" + std::to_string(i * 7919 % 997);
        ++tree[word];
        table[word].push_back(i);
    }
    int thrown = 0;
    for (int i = 0; i < 100; i++) {
        try {
            if (i % 3 == 0) throw std::runtime_error(std::to_string(i));
        } catch (const std::exception &error) {
            thrown += static_cast<int>(std::string(error.what()).size());
        }
    }
    std::ostringstream out;
    for (auto &[word, places] : table) {
        std::sort(places.rbegin(), places.rend());
        out << word.size() << ' ' << places.front() << '\n';
    }
    std::cout << tree.size() << ' ' << thrown << ' ' << out.str().size() << '\n';
}

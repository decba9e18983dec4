// Four threads take numbers from a queue under a mutex and a condition variable.
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

int main() {
  std::mutex lock;
  std::condition_variable ready;
  std::queue<int> queue;
  bool done = false;
  long total = 0;
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 4; worker++)
    threads.emplace_back([&] {
      for (;;) {
        std::unique_lock<std::mutex> held(lock);
        ready.wait(held, [&] { return done || !queue.empty(); });
        if (queue.empty()) return;
        long value = queue.front();
        queue.pop();
        held.unlock();
        for (int i = 0; i < 2000; i++) value = value * 31 % 1000003;
        held.lock();
        total += value;
      }
    });
  for (int i = 0; i < 2000; i++) {
    { std::lock_guard<std::mutex> held(lock); queue.push(i); }
    ready.notify_one();
  }
  { std::lock_guard<std::mutex> held(lock); done = true; }
  ready.notify_all();
  for (auto &thread : threads) thread.join();
  std::printf("%ld\n", total);
}

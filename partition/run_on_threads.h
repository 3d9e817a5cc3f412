// Runs tasks on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace convoy::partition {

// Calls task(0), task(1), … task(count - 1) in this order on `threads` threads. Returns when all
// have ended. If some throw, rethrows the exception of the first of them.
template <typename Task>
void run_on_threads(std::size_t count, unsigned threads, const Task& task) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) try {
        task(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
  };
  {
    std::vector<std::jthread> helpers;
    for (unsigned thread = 1; thread < std::min<std::size_t>(threads, count); ++thread)
      helpers.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace convoy::partition

// Simulates a device on which all work runs as late as possible: a copy or a kernel runs only when
// other work that is ordered after it runs, or when a thread waits for it. If an order is missing,
// work finds memory without its data, or overwrites data that other work needs. If a piece of work
// depends on several others, these run in the order of Work::after, or in the reverse order if
// `backwards` is set.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "app/sharing/device_queue.h"

namespace convoy::app {

class SimulatedQueue final : public DeviceQueue {
 public:
  struct Work {
    std::function<void()> run;
    std::vector<std::shared_ptr<Work>> after;
    bool done = false;
  };
  // A copy that has been started. copies() lists them in the order in which they were started.
  struct Copy {
    Direction direction;
    const void* device;
    std::size_t bytes;
    std::shared_ptr<Work> work;
  };

  explicit SimulatedQueue(bool backwards = false) : backwards_(backwards) {}

  // Puts work on a stream. A stream may be any number from 1 on instead of a stream of CUDA.
  void launch(kernels::Stream stream, std::function<void()> run) { append(stream.get(), std::move(run)); }
  const std::vector<Copy>& copies() const { return copies_; }

  Mark mark(kernels::Stream stream) override { return last_[stream.get()]; }
  bool reached(const Mark& mark) override { return !mark || static_cast<Work*>(mark.get())->done; }
  void order(kernels::Stream stream, const Mark& mark) override {
    append(stream.get(), {}).after.push_back(std::static_pointer_cast<Work>(mark));
  }
  void wait(const Mark& mark) override { finish(static_cast<Work*>(mark.get())); }
  Mark copy(Direction direction, void* to, const void* from, std::size_t bytes,
            std::span<const Mark> after) override {
    Work& work = append(&engines_[static_cast<int>(direction)], [=] { std::memcpy(to, from, bytes); });
    for (const Mark& mark : after) work.after.push_back(std::static_pointer_cast<Work>(mark));
    const Mark made = last_[&engines_[static_cast<int>(direction)]];
    copies_.push_back({direction, direction == Direction::to_device ? to : from, bytes,
                       std::static_pointer_cast<Work>(made)});
    return made;
  }
  void synchronize() override {
    for (const auto& [stream, work] : last_) finish(work.get());
  }

 private:
  Work& append(const void* stream, std::function<void()> run) {
    std::shared_ptr<Work>& last = last_[stream];
    auto work = std::make_shared<Work>();
    work->run = std::move(run);
    if (last) work->after.push_back(last);
    last = std::move(work);
    return *last;
  }
  void finish(Work* work) {
    if (work == nullptr || work->done) return;
    if (backwards_) std::ranges::reverse(work->after);
    for (const std::shared_ptr<Work>& before : work->after) finish(before.get());
    work->done = true;
    if (work->run) work->run();
    work->after.clear();
  }

  const bool backwards_;
  std::map<const void*, std::shared_ptr<Work>> last_;
  std::vector<Copy> copies_;
  char engines_[2] = {};
};

}  // namespace convoy::app

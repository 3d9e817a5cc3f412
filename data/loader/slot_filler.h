// Background threads that fill a ring of slots in order. A slot stands for the buffers of one
// batch. The owner provides the function that fills it. The threads take the samples of a slot in
// blocks, so all threads work even on a single batch.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace convoy::data {

class SlotFiller {
 public:
  // `number` counts the fillings of slots from 0. Filling `number` writes slot number % slots.
  struct FillTask {
    // Called once per filling of a slot, before `fill`. May be empty.
    std::function<void(int slot, std::int64_t number)> prepare;
    std::function<void(int slot, std::int64_t begin, std::int64_t end, int thread)> fill;
    std::int64_t samples = 0;  // samples per slot
    std::int64_t block = 1;    // samples that a thread takes at a time
    // If true, the filling of a slot starts with submit(). If false, it starts when the slot is
    // free.
    bool fed = false;
  };
  SlotFiller(int slots, int threads, FillTask task);
  ~SlotFiller();  // waits for blocks that are being filled and ends the threads
  SlotFiller(const SlotFiller&) = delete;
  SlotFiller& operator=(const SlotFiller&) = delete;

  int acquire();  // waits for the next slot in order; rethrows exceptions of `fill`
  void release(int slot) noexcept;

  // Returns the slot that the next submit() will start, if FillTask::fed is set. Throws
  // std::logic_error unless the slot is free.
  int next_to_submit() const;
  void submit();

  double wait_ms() const { return wait_ms_; }

 private:
  enum class State : std::uint8_t { free, filling, ready, leased };
  struct Slot {
    State state = State::free;
    std::int64_t dealt = 0, done = 0;  // numbers of samples taken and filled by threads
    std::exception_ptr failure;
  };
  struct Block {
    int slot;
    std::int64_t begin, end;
  };

  void run(int thread);
  bool startable() const;
  bool take(Block& block);
  void start_slot();
  int slot_of(std::int64_t number) const {
    return static_cast<int>(number % static_cast<std::int64_t>(slots_.size()));
  }

  FillTask task_;
  mutable std::mutex mutex_;
  std::condition_variable work_ready_, slot_ready_;
  std::vector<Slot> slots_;
  std::int64_t started_ = 0, submitted_ = 0, acquired_ = 0;
  bool stopping_ = false;
  double wait_ms_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace convoy::data

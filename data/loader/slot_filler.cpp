#include "data/loader/slot_filler.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace convoy::data {

SlotFiller::SlotFiller(int slots, int threads, FillTask task) : task_(std::move(task)) {
  if (slots < 1 || threads < 1 || task_.samples < 1 || task_.block < 1) {
    throw std::invalid_argument("SlotFiller: slots, threads, samples and block must be positive");
  }
  slots_.resize(static_cast<std::size_t>(slots));
  for (int thread = 0; thread < threads; ++thread) threads_.emplace_back([this, thread] { run(thread); });
}

SlotFiller::~SlotFiller() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_ready_.notify_all();
  for (auto& thread : threads_) thread.join();
}

bool SlotFiller::startable() const {
  return slots_[static_cast<std::size_t>(slot_of(started_))].state == State::free &&
         (!task_.fed || started_ < submitted_);
}

void SlotFiller::start_slot() {
  const int index = slot_of(started_);
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  slot.state = State::filling;
  slot.dealt = slot.done = 0;
  slot.failure = nullptr;
  if (task_.prepare) task_.prepare(index, started_);
  ++started_;
}

// Gives a thread a block of samples from the slot that was started last. Earlier slots have no
// blocks left, because a slot is started only after all blocks of the previous one were taken.
bool SlotFiller::take(Block& block) {
  for (int tries = 0; tries < 2; ++tries) {
    if (started_ > 0) {
      const int index = slot_of(started_ - 1);
      Slot& slot = slots_[static_cast<std::size_t>(index)];
      if (slot.state == State::filling && slot.dealt < task_.samples) {
        block = {index, slot.dealt, std::min(slot.dealt + task_.block, task_.samples)};
        slot.dealt = block.end;
        return true;
      }
    }
    if (!startable()) return false;
    start_slot();
  }
  return false;
}

void SlotFiller::run(int thread) {
  std::unique_lock lock(mutex_);
  for (;;) {
    Block block{};
    bool taken = false;
    work_ready_.wait(lock, [&] { return stopping_ || (taken = take(block)); });
    if (stopping_) return;
    if (!taken) continue;
    lock.unlock();
    std::exception_ptr failure;
    try {
      task_.fill(block.slot, block.begin, block.end, thread);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    Slot& slot = slots_[static_cast<std::size_t>(block.slot)];
    if (failure && !slot.failure) slot.failure = failure;
    slot.done += block.end - block.begin;
    if (slot.done == task_.samples) {
      slot.state = State::ready;
      slot_ready_.notify_all();
    }
  }
}

int SlotFiller::acquire() {
  std::unique_lock lock(mutex_);
  const int index = slot_of(acquired_);
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  if (slot.state == State::leased) {
    throw std::logic_error("next(): the batch whose buffer comes next in the ring has not been given back");
  }
  if (slot.state != State::ready) {
    const auto start = std::chrono::steady_clock::now();
    slot_ready_.wait(lock, [&] { return slot.state == State::ready; });
    wait_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  if (slot.failure) std::rethrow_exception(slot.failure);
  slot.state = State::leased;
  ++acquired_;
  return index;
}

void SlotFiller::release(int slot) noexcept {
  {
    const std::lock_guard lock(mutex_);
    slots_[static_cast<std::size_t>(slot)].state = State::free;
  }
  work_ready_.notify_all();
}

int SlotFiller::next_to_submit() const {
  const std::lock_guard lock(mutex_);
  const int index = slot_of(submitted_);
  if (slots_[static_cast<std::size_t>(index)].state != State::free ||
      submitted_ - acquired_ >= static_cast<std::int64_t>(slots_.size())) {
    throw std::logic_error("next(): the batch whose buffer comes next in the ring has not been given back");
  }
  return index;
}

void SlotFiller::submit() {
  {
    const std::lock_guard lock(mutex_);
    ++submitted_;
  }
  work_ready_.notify_all();
}

}  // namespace convoy::data

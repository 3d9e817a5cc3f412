#include "data/convert/pipeline.h"

#include <algorithm>

namespace convoy::data {
namespace {

constexpr std::size_t kMostBytes = 64 << 20;
constexpr std::size_t kMostImages = 4096;

}  // namespace

ConvertPipeline::ConvertPipeline(int threads, Work work, Deliver deliver)
    : work_(std::move(work)), deliver_(std::move(deliver)) {
  const int wanted =
      threads > 0 ? threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (int i = 0; i < wanted; ++i) workers_.emplace_back([this] { run(); });
}

ConvertPipeline::~ConvertPipeline() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  submitted_.notify_all();
}

void ConvertPipeline::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    submitted_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const auto slot = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    work_(*slot->image);
    lock.lock();
    slot->done = true;
    if (slots_.front() == slot) done_.notify_one();
  }
}

void ConvertPipeline::submit(std::unique_ptr<ConvertedImage> image, std::size_t bytes) {
  for (;;) {
    std::unique_lock lock(mutex_);
    const bool room = slots_.empty() || (bytes_ + bytes <= kMostBytes && slots_.size() < kMostImages);
    if (room && (slots_.empty() || !slots_.front()->done)) {
      slots_.push_back(std::make_shared<Slot>(Slot{std::move(image), bytes, false}));
      waiting_.push_back(slots_.back());
      bytes_ += bytes;
      submitted_.notify_one();
      return;
    }
    lock.unlock();
    deliver_first();
  }
}

void ConvertPipeline::deliver_first() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return slots_.front()->done; });
  const auto slot = slots_.front();
  lock.unlock();
  deliver_(*slot->image);
  lock.lock();
  slots_.pop_front();
  bytes_ -= slot->bytes;
}

void ConvertPipeline::finish() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (slots_.empty()) return;
    }
    deliver_first();
  }
}

MemoryBudget::Share::Share(MemoryBudget& budget, std::int64_t bytes)
    : budget_(budget), bytes_(std::min(bytes, budget.bytes_)) {
  std::unique_lock lock(budget_.mutex_);
  budget_.released_.wait(lock, [&] { return budget_.used_ + bytes_ <= budget_.bytes_; });
  budget_.used_ += bytes_;
}

MemoryBudget::Share::~Share() {
  {
    const std::lock_guard lock(budget_.mutex_);
    budget_.used_ -= bytes_;
  }
  budget_.released_.notify_all();
}

}  // namespace convoy::data

#include "data/convert/pipeline.h"

#include <algorithm>

namespace convoy::data {
namespace {

constexpr std::size_t kMostImages = 4096;

}  // namespace

ConvertPipeline::ConvertPipeline(int threads, std::int64_t memory, Work work, Deliver deliver)
    : memory_(memory), work_(std::move(work)), deliver_(std::move(deliver)) {
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
  reserved_.notify_all();
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
    const bool room = has_room(bytes) && slots_.size() < kMostImages;
    if (room && (slots_.empty() || !slots_.front()->done)) {
      image->number = next_number_++;
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

void ConvertPipeline::make_room(std::size_t bytes) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (has_room(bytes)) return;
    }
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
  used_ -= slot->image->reserved;
  slot->image.reset();
  reserved_.notify_all();
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

bool ConvertPipeline::reserve(ConvertedImage& image, std::int64_t bytes) {
  std::unique_lock lock(mutex_);
  bytes = std::min(bytes, memory_);
  reserved_.wait(lock,
                 [&] { return stopping_ || (next_to_reserve_ == image.number && used_ + bytes <= memory_); });
  if (stopping_) return false;
  ++next_to_reserve_;
  used_ += image.reserved = bytes;
  reserved_.notify_all();
  return true;
}

void ConvertPipeline::keep(ConvertedImage& image, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  used_ += bytes - image.reserved;
  image.reserved = bytes;
  reserved_.notify_all();
}

}  // namespace convoy::data

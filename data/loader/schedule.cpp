#include "data/loader/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace convoy::data {

BatchSchedule::BatchSchedule(std::int64_t set_size, const LoaderOptions& options)
    : size_(set_size),
      global_batch_(options.global_batch),
      steps_(0),
      ranks_(options.ranks),
      group_(options.group),
      seed_(options.seed),
      order_(options.order),
      start_(options.start) {
  if (ranks_ < 1 || options.rank < 0 || options.rank >= ranks_ || size_ < 1) {
    throw std::invalid_argument(
        fmt::format("BatchSchedule: rank {} of {} with {} samples", options.rank, ranks_, size_));
  }
  const std::int64_t least = std::int64_t{ranks_} * group_;
  if (global_batch_ < least || global_batch_ > std::numeric_limits<std::int32_t>::max()) {
    throw std::runtime_error(fmt::format(
        "global batch {}: expected at least {}, {} a rank", global_batch_, least,
        group_ == 1 ? "one sample" : fmt::format("{} samples, which mixing needs together,", group_)));
  }
  steps_ = (size_ + global_batch_ - 1) / global_batch_;
  if (start_.epoch < 0 || start_.step < 0 || start_.step > steps_) {
    throw std::runtime_error(fmt::format("start at epoch {} step {}: expected 0 to {} steps in an epoch",
                                         start_.epoch, start_.step, steps_));
  }
}

BatchPosition BatchSchedule::position(std::int64_t number) const {
  const std::int64_t step = start_.step + number;
  return {start_.epoch + step / steps_, step % steps_};
}

std::int64_t BatchSchedule::global_valid(BatchPosition position) const {
  return std::min(global_batch_, size_ - position.step * global_batch_);
}

SampleRange BatchSchedule::range(BatchPosition position, int rank) const {
  return range_of_rank(global_valid(position), ranks_, rank, group_);
}

void BatchSchedule::samples(BatchPosition position, std::int64_t first, std::int64_t count,
                            std::int64_t* to) const {
  const std::int64_t begin = position.step * global_batch_ + first;
  if (order_ == Order::sequential) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = begin + i;
    return;
  }
  const Permutation permutation(size_, seed_, position.epoch);
  for (std::int64_t i = 0; i < count; ++i) to[i] = permutation[begin + i];
}

}  // namespace convoy::data

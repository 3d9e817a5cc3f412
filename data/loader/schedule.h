// Computes how many steps an epoch has and which samples a rank gets at each step.
#pragma once

#include <cstdint>

#include "data/loader/batch.h"
#include "data/loader/loader.h"
#include "data/loader/order.h"

namespace convoy::data {

class BatchSchedule {
 public:
  // Throws std::runtime_error when the batch has less than one group of samples for each rank.
  BatchSchedule(std::int64_t set_size, const LoaderOptions& options);

  std::int64_t steps_per_epoch() const { return steps_; }
  std::int64_t global_batch() const { return global_batch_; }
  // The most samples of a rank.
  std::int32_t capacity() const {
    return static_cast<std::int32_t>(range_of_rank(global_batch_, ranks_, 0, group_).count);
  }
  // Returns the position of batch `number`, counted from the position at which the run starts.
  BatchPosition position(std::int64_t number) const;
  std::int64_t global_valid(BatchPosition position) const;
  SampleRange range(BatchPosition position, int rank) const;  // the range of the global batch for `rank`
  // Writes to `to` the data set's indices of the samples `first` to `first + count - 1` of the
  // global batch at `position`.
  void samples(BatchPosition position, std::int64_t first, std::int64_t count, std::int64_t* to) const;

 private:
  std::int64_t size_, global_batch_, steps_;
  int ranks_, group_;
  std::uint64_t seed_;
  Order order_;
  BatchPosition start_;
};

}  // namespace convoy::data

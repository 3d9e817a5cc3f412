// `convoy info --memory --within SIZE`: tells the largest batch and the largest images with which a
// network trains within a memory limit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "app/compile/step_options.h"
#include "app/model/zoo/zoo.h"

namespace convoy::app {

// Finds the largest number whose value is within a limit, for values that grow. Knows the values of
// earlier searches, so that several limits need few values.
class LargestWithin {
 public:
  // `value` may throw for numbers that are too large. `power`: values grow about as number^power.
  LargestWithin(std::function<std::int64_t(std::int64_t)> value, int power)
      : value_(std::move(value)), power_(power) {}

  // Searches multiples of `step` up to `most`, from `first` on. The result is at most 2 %, or one
  // step, below the largest. Returns 0 if no multiple is within the limit.
  std::int64_t find(std::int64_t limit, std::int64_t first, std::int64_t step, std::int64_t most);

 private:
  std::int64_t value(std::int64_t number);
  std::int64_t guess(std::int64_t limit, std::int64_t low, std::int64_t step);

  std::function<std::int64_t(std::int64_t)> value_;
  const int power_;
  std::map<std::int64_t, std::int64_t> known_;
};

// Prints a row for each limit: the largest batch at the requested size of images, and the largest
// side, in multiples of 32 pixels, at the requested batch. Runs nothing on the device.
void print_within(const NetworkRequest& request, const StepOptions& options,
                  const std::vector<std::int64_t>& limits, bool json);

}  // namespace convoy::app

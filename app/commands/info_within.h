// `convoy info --memory --within SIZE`: tells the largest batch and the largest images with which a
// network trains within a memory limit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/compile/step_options.h"
#include "app/model/zoo/zoo.h"

namespace convoy::app {

// Finds the largest number whose value is within a limit, for values that grow. Knows the values of
// earlier searches, so that several limits need few values.
class LargestWithin {
 public:
  struct Numbers {
    std::int64_t step = 1, most = 1;  // multiples of `step` up to `most` are searched
    int power = 1;                    // values grow about as number^power
    // Tells which of the multiples count; null if all do.
    std::function<bool(std::int64_t)> possible = nullptr;
  };
  struct Found {
    std::int64_t number = 0;  // 0 if none is within the limit
    std::string bound;        // if not the limit, the reason why larger numbers are impossible
  };

  // `value` throws std::exception for numbers that are too large for another reason.
  LargestWithin(std::function<std::int64_t(std::int64_t)> value, Numbers numbers)
      : value_(std::move(value)), numbers_(std::move(numbers)) {}

  // Searches from `first` on. The result is at most 2 %, or one step, below the largest, and not
  // below that of an earlier search with a lower limit.
  Found find(std::int64_t limit, std::int64_t first);

 private:
  std::int64_t value(std::int64_t number);
  std::int64_t guess(std::int64_t limit, std::int64_t low) const;
  std::int64_t nearest_possible(std::int64_t number, std::int64_t low, std::int64_t high) const;

  std::function<std::int64_t(std::int64_t)> value_;
  const Numbers numbers_;
  std::map<std::int64_t, std::int64_t> known_;
  std::map<std::int64_t, std::string> errors_;  // by number: why it has no value
};

// Prints a row for each limit, the lowest first: the largest batch at the requested size of images,
// and the largest side, in multiples of 32 pixels, at the requested batch. Says where memory is not
// what limits them. Runs nothing on the device.
void print_within(const NetworkRequest& request, const StepOptions& options, std::vector<std::int64_t> limits,
                  bool json);

}  // namespace convoy::app

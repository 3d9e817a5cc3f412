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

// Finds the largest number whose value is within a limit: for example the largest batch whose
// memory is within some bytes. Values must grow with the number. Values of earlier searches are
// kept, so that a search with another limit computes only a few new ones.
class LargestWithin {
 public:
  struct Numbers {
    std::int64_t step = 1, most = 1;  // multiples of `step` up to `most` are searched
    int power = 1;                    // values grow about as number^power
    // Returns whether a multiple of `step` is a valid number. Null if all are.
    std::function<bool(std::int64_t)> possible = nullptr;
  };
  struct Found {
    std::int64_t number = 0;  // 0 if no number is within the limit
    // The reason why no larger number is possible. Empty if the limit is the reason.
    std::string bound;
  };

  // `value` computes the value of a number. It throws std::exception if the number is impossible
  // whatever the limit. Larger numbers then count as impossible, too.
  LargestWithin(std::function<std::int64_t(std::int64_t)> value, Numbers numbers)
      : value_(std::move(value)), numbers_(std::move(numbers)) {}

  // Returns the largest number whose value is within `limit`. The result may be too small by 2 %,
  // or by one Numbers::step. But it is never below the result of an earlier search with a lower
  // limit. The search begins at `first`.
  Found find(std::int64_t limit, std::int64_t first);

 private:
  std::int64_t value(std::int64_t number);
  std::int64_t guess(std::int64_t limit, std::int64_t low) const;
  std::int64_t nearest_possible(std::int64_t number, std::int64_t low, std::int64_t high) const;

  std::function<std::int64_t(std::int64_t)> value_;
  const Numbers numbers_;
  std::map<std::int64_t, std::int64_t> known_;
  std::map<std::int64_t, std::string> errors_;  // for each number without a value: the reason
};

// Prints a row for each memory limit, the lowest first. A row has two numbers:
//   - the largest batch, with the requested size of images
//   - the largest side of images in multiples of 32 pixels, with the requested batch
// If something other than memory limits a number, the row says what. Runs nothing on the device.
void print_within(const NetworkRequest& request, const StepOptions& options, std::vector<std::int64_t> limits,
                  bool json);

}  // namespace convoy::app

#include "app/training/stream_choice.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy::app {
namespace {

// After the number of streams has changed, the times of this many steps are not measured, because
// the steps were started before the change.
constexpr std::int64_t kLeftOut = 4;
constexpr std::int64_t kLeastSteps = 8;
constexpr double kLeastMs = 100;
// Every number of streams is tried in two rounds. The faster round counts, because the slower one
// may have been disturbed by other work.
constexpr int kRounds = 2;

}  // namespace

StreamChoice::StreamChoice(int shapes) : shapes_(shapes), tries_{{shapes}} {
  for (int streams = 1; streams < shapes; streams *= 2) tries_.push_back({streams});
}

bool StreamChoice::finished(double step_ms) {
  if (done_ || ++steps_ <= kLeftOut) return false;
  sum_ms_ += step_ms;
  const std::int64_t measured = steps_ - kLeftOut;
  if (measured < kLeastSteps || sum_ms_ < kLeastMs) return false;
  tries_[at_].step_ms = std::min(tries_[at_].step_ms, sum_ms_ / static_cast<double>(measured));
  steps_ = 0, sum_ms_ = 0;
  if (++at_ < tries_.size()) return true;
  at_ = 0;
  if (++round_ < kRounds) return true;
  at_ = static_cast<std::size_t>(std::ranges::min_element(tries_, {}, &Try::step_ms) - tries_.begin());
  done_ = true;
  return true;
}

std::string StreamChoice::text() const {
  const double turns = std::ranges::find(tries_, 1, &Try::streams)->step_ms, chosen = tries_[at_].step_ms;
  if (streams() == 1)
    return fmt::format("the {} shapes take turns: {:.2f} ms a step, and {:.2f} ms side by side", shapes_,
                       turns, tries_.front().step_ms);
  return fmt::format("the {} shapes run on {} streams: {:.2f} ms a step, {:.2f} times as fast as in turns",
                     shapes_, streams(), chosen, turns / chosen);
}

}  // namespace convoy::app

#include "partition/memory/recompute_plan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

namespace convoy::partition {
namespace {

constexpr int kUnits = 1024;  // number of units in which the memory of a step is counted
constexpr float kNever = std::numeric_limits<float>::infinity();

void note(const std::vector<int>& tensors, Available& available) {
  for (const int tensor : tensors) available[static_cast<std::size_t>(tensor)] = 1;
}

}  // namespace

// One way to run a segment, which is a range of consecutive blocks, forward and backward.
struct RecomputePlanner::Choice {
  // If > 0: run forward to this block, keep its input, and later run the blocks before it again.
  int cut = -1;
  // If `cut` is not set: the tensors that the first block of the segment keeps.
  const BlockOption* option = nullptr;
  std::int64_t peak = 0;  // least bytes that the segment needs
  std::int64_t kept = 0;  // bytes that stay in memory while the later blocks run
  // Time of repeated runs, without those inside the two smaller segments that this choice creates.
  double ms = 0;
};

RecomputePlanner::RecomputePlanner(StepModel model, std::vector<int> away, const HostLink& link)
    : model_(std::move(model)),
      away_(std::move(away)),
      link_(link),
      step_(model_, away_),
      blocks_(static_cast<int>(std::ssize(step_.blocks()))) {
  fill_tables();
}

int RecomputePlanner::units(std::int64_t bytes) const {
  return static_cast<int>((bytes + unit_ / 2) / unit_);
}

// Returns the time of repeating forward for the blocks [first, end), which belong to a segment
// (range of blocks) that ends with block `last`. It is 0 if `last` is the network's last block,
// because these blocks then run forward for the first time.
double RecomputePlanner::forward_ms(int first, int last, int end) const {
  double ms = 0;
  if (last < blocks_ - 1)
    for (int block = first; block < end; ++block) ms += step_.blocks()[block].forward_ms;
  return ms;
}

std::int64_t RecomputePlanner::forward_peak(int first, int end) const {
  std::int64_t peak = 0;
  for (int block = first; block < end; ++block)
    peak = std::max(peak, step_.bytes_between(block, first) + step_.blocks()[block].forward_peak);
  return peak;
}

// Returns the bytes that are live when a segment (range of blocks) begins, besides its input:
// gradients, and the outputs that the backward of its last block `last` needs.
std::int64_t RecomputePlanner::entry_bytes(int last) const {
  if (last == blocks_ - 1) return 0;
  std::int64_t bytes = step_.blocks()[last].gradient_bytes;
  for (const int tensor : step_.blocks()[last].own_outputs) bytes += model_.tensor_bytes[tensor];
  return bytes;
}

void RecomputePlanner::fill_tables() {
  // Upper bounds, over all options, of the bytes that earlier blocks keep and of the bytes that the
  // step needs.
  std::int64_t before = 0, most = 0;
  for (const StepBlock& block : step_.blocks()) {
    std::int64_t kept = 0;
    for (const BlockOption& option : block.options) {
      most = std::max({most, before + option.forward_peak, before + option.backward_peak});
      kept = std::max(kept, option.kept_bytes);
    }
    before += kept;
  }
  unit_ = std::max<std::int64_t>(1, (most + kUnits - 1) / kUnits);
  most_ = units(most) + blocks_;  // the bytes of each block may be rounded up to one more unit
  tables_.resize(static_cast<std::size_t>(blocks_ * blocks_));
  for (int length = 1; length <= blocks_; ++length)
    for (int first = 0; first + length <= blocks_; ++first) fill(first, first + length - 1);
}

template <typename Visit>
void RecomputePlanner::for_each_choice(int first, int last, Visit visit) const {
  const StepBlock& block = step_.blocks()[first];
  const bool repeated = last < blocks_ - 1;
  const std::int64_t entry = entry_bytes(last);
  for (const BlockOption& option : block.options)
    visit(Choice{-1, &option, std::max(entry + option.forward_peak, option.backward_peak),
                 first < last ? option.kept_bytes : 0,
                 option.repeated_ms + (repeated ? option.forward_ms : 0)});
  if (first == last && repeated)
    visit(Choice{-1, &block.late, block.late.backward_peak, 0, block.late.repeated_ms});
  for (int cut = first + 1; cut <= last; ++cut)
    visit(Choice{cut, nullptr, entry + forward_peak(first, cut), step_.bytes_between(cut, first),
                 forward_ms(first, last, cut)});
}

// A choice divides a segment (range of blocks) into at most two smaller segments. Returns their
// tables of least times (fill()). The first table is that of the later blocks, whose backward runs
// first. The second is that of the blocks that run forward again. A pointer is null if there is no
// such segment.
std::pair<const RecomputePlanner::Times*, const RecomputePlanner::Times*> RecomputePlanner::tables_of(
    const Choice& choice, int first, int last) const {
  if (choice.cut > 0) return {&table(choice.cut, last), &table(first, choice.cut - 1)};
  return {first < last ? &table(first + 1, last) : nullptr, nullptr};
}

// Fills the table of a segment (range of blocks): for every amount of free memory, the least time
// over all choices. The times in the table do not grow with memory. A choice takes its shortest
// time with all memory. So the loop below ends at the first time in the table that is at most this
// shortest time: the choice can improve neither this time nor any later one.
void RecomputePlanner::fill(int first, int last) {
  Times times(static_cast<std::size_t>(most_ + 1), kNever);
  for_each_choice(first, last, [&](const Choice& choice) {
    const auto [inner, after] = tables_of(choice, first, last);
    const int kept = units(choice.kept);
    const int begin = std::max(units(choice.peak), kept);
    if (begin > most_) return;
    const auto ms = static_cast<float>(choice.ms);
    const auto time = [&](int free) {
      return ms + (inner != nullptr ? (*inner)[free - kept] : 0) + (after != nullptr ? (*after)[free] : 0);
    };
    const float shortest = time(most_);
    for (int free = begin; free <= most_ && times[free] > shortest; ++free)
      times[free] = std::min(times[free], time(free));
  });
  tables_[static_cast<std::size_t>(first * blocks_ + last)] = std::move(times);
}

RecomputePlanner::Choice RecomputePlanner::best_choice(int first, int last, int free) const {
  Choice best;
  float least = kNever;
  for_each_choice(first, last, [&](const Choice& choice) {
    const auto [inner, after] = tables_of(choice, first, last);
    const int kept = units(choice.kept);
    if (free < std::max(units(choice.peak), kept)) return;
    const float ms = static_cast<float>(choice.ms) + (inner != nullptr ? (*inner)[free - kept] : 0) +
                     (after != nullptr ? (*after)[free] : 0);
    if (ms < least) best = choice, least = ms;
  });
  if (least == kNever) throw std::logic_error("a stretch of blocks does not fit into its memory");
  return best;
}

// Appends runs of the blocks [first, end), which make the input of block `end`. `last` is the last
// block of the segment. If it is the network's last block, these blocks run forward for the first
// time, so all their operations run.
void RecomputePlanner::append_forward(int first, int end, int last, Available& available,
                                      StepSchedule& to) const {
  for (int block = first; block < end; ++block) {
    const StepBlock& of = step_.blocks()[block];
    Available inside = available;
    if (last < blocks_ - 1)
      step_.append_forward(block, of.outputs, inside, to);
    else
      for (int i = of.first; i < of.end; ++i) to.push_back({i, model_.operations[i].outputs});
    for (const int tensor : of.outputs) available[tensor] = 1;
  }
}

// Appends the runs of a segment (range of blocks), forward and backward, within `free` units of
// memory. `available` marks the segment's input, the outputs that the last block's backward needs,
// and all tensors that stay in memory.
void RecomputePlanner::append(int first, int last, int free, Available available, StepSchedule& to) const {
  const Choice choice = best_choice(first, last, free);
  if (choice.cut > 0) {
    Available inner = available;
    append_forward(first, choice.cut, last, inner, to);
    inner = available;
    note(step_.between(choice.cut), inner);
    append(choice.cut, last, free - units(choice.kept), std::move(inner), to);
    note(step_.blocks()[choice.cut - 1].own_outputs, available);
    return append(first, choice.cut - 1, free, std::move(available), to);
  }
  const StepBlock& block = step_.blocks()[first];
  if (choice.option != &block.late) append_kept(first, last, *choice.option, available, to);
  if (first < last) {
    Available next = available;
    note(block.outputs, next);
    append(first + 1, last, free - units(choice.kept), std::move(next), to);
    note(block.own_outputs, available);
  }
  step_.append_backward(first, available, to);
}

// Appends the runs of a block that make the tensors of `option`. If the block is not the last one
// of its segment, the runs also make the block's outputs.
void RecomputePlanner::append_kept(int block, int last, const BlockOption& option, Available& available,
                                   StepSchedule& to) const {
  Available inner = available;
  if (last < blocks_ - 1) {
    std::vector<int> wanted = option.kept;
    if (block < last)
      wanted.insert(wanted.end(), step_.blocks()[block].outputs.begin(), step_.blocks()[block].outputs.end());
    step_.append_forward(block, wanted, inner, to);
  } else {
    append_forward(block, block + 1, last, inner, to);
  }
  note(option.kept, available);
}

std::int64_t RecomputePlanner::peak_of(const StepSchedule& schedule) const {
  if (away_.empty()) return live_peak(model_, schedule);
  return live_peak(model_, HostCopies(model_, schedule, away_, link_).on_demand());
}

RecomputePlan RecomputePlanner::plan_in(int free) const {
  RecomputePlan plan;
  append(0, blocks_ - 1, free, Available(model_.tensor_bytes.size(), 0), plan.schedule);
  remove_unread(model_, plan.schedule);
  plan.repeated_ms = repeated_ms(model_, plan.schedule);
  plan.live_bytes = peak_of(plan.schedule);
  return plan;
}

RecomputePlan RecomputePlanner::least() const {
  const Times& times = table(0, blocks_ - 1);
  int free = 0;
  while (times[static_cast<std::size_t>(free)] == kNever) ++free;
  RecomputePlan best = plan_in(free);
  for (int more = free + 1; more <= std::min(most_, free + kUnits / 32); ++more)
    if (RecomputePlan other = plan_in(more); other.live_bytes < best.live_bytes) best = std::move(other);
  keep_more(best, best.live_bytes);
  return best;
}

std::optional<RecomputePlan> RecomputePlanner::plan(std::int64_t limit) const {
  RecomputePlan best{single_runs(model_), 0, 0};
  best.live_bytes = peak_of(best.schedule);
  if (best.live_bytes <= limit) return best;
  const Times& times = table(0, blocks_ - 1);
  int low = 0, high = most_;  // bounds of a binary search; a plan for `low` units fits
  while (low < most_ && times[static_cast<std::size_t>(low)] == kNever) ++low;
  bool found = false;
  const auto fits = [&](int free) {
    RecomputePlan plan = plan_in(free);
    if (plan.live_bytes > limit) return false;
    if (!found || plan.repeated_ms < best.repeated_ms) best = std::move(plan), found = true;
    return true;
  };
  if (!fits(low)) {
    best = least();
    if (best.live_bytes > limit) return std::nullopt;
    found = true;
  }
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  std::vector<StepSchedule> tried{best.schedule};
  keep_more(best, limit);
  // Also try plans for slightly more or less memory. One of them may leave more free memory for
  // keep_more() and then become the fastest.
  const int near = std::clamp(static_cast<int>(6000 / std::ssize(model_.operations)), 3, 20);
  for (int free = std::max(low - near, 0); free <= std::min(low + near, most_); ++free) {
    if (times[static_cast<std::size_t>(free)] == kNever) continue;
    RecomputePlan other = plan_in(free);
    if (other.live_bytes > limit || std::ranges::find(tried, other.schedule) != tried.end()) continue;
    tried.push_back(other.schedule);
    keep_more(other, limit);
    if (other.repeated_ms < best.repeated_ms) best = std::move(other);
  }
  return best;
}

// Removes repeated runs as far as the limit allows, the longest ones first. Their outputs are kept.
void RecomputePlanner::keep_more(RecomputePlan& plan, std::int64_t limit) const {
  struct Repeated {
    double ms;
    int operation, number;  // the run is the number-th one of the operation
  };
  // For each tensor, the operations that write it. Each of them writes one slice, so all or none of
  // them must be left out.
  std::vector<std::vector<int>> writers(model_.tensor_bytes.size());
  for (int i = 0; i < std::ssize(model_.operations); ++i)
    for (const int tensor : model_.operations[i].outputs) writers[tensor].push_back(i);
  std::vector<int> runs(model_.operations.size(), 0);
  std::vector<Repeated> repeated;
  for (const StepRun& run : plan.schedule)
    if (const int number = runs[run.operation]++; number > 0)
      repeated.push_back({model_.operations[run.operation].ms, run.operation, number});
  std::ranges::stable_sort(repeated, std::greater(), &Repeated::ms);
  StepSchedule without;  // declared outside the loop, so that its memory is reused
  for (const Repeated& each : repeated) {
    std::vector<char> left_out(model_.operations.size(), 0);
    left_out[each.operation] = 1;
    for (const int tensor : model_.operations[each.operation].outputs)
      if (writers[tensor].size() > 1)
        for (const int writer : writers[tensor]) left_out[writer] = 1;
    without = plan.schedule;
    std::ranges::fill(runs, 0);
    std::erase_if(without, [&](const StepRun& run) {
      const int number = runs[run.operation]++;
      return left_out[run.operation] && number == each.number;
    });
    if (without.size() == plan.schedule.size()) continue;
    remove_unread(model_, without);
    const std::int64_t bytes = peak_of(without);
    if (bytes > limit) continue;
    std::swap(plan.schedule, without);
    plan.live_bytes = bytes;
  }
  plan.repeated_ms = repeated_ms(model_, plan.schedule);
}

}  // namespace convoy::partition

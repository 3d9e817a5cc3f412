// Lists the options of a block (step_blocks.h). An option is a set of tensors that the block keeps
// in memory for backward. The options are all subsets of its tensors. If these are too many, they
// are a series of sets in which each has one tensor less than the one before.
#include <algorithm>
#include <functional>
#include <limits>

#include "partition/memory/step_blocks.h"

namespace convoy::partition {
namespace {

constexpr std::size_t kMostSubsets = 256;
// Tensors this many times smaller than the largest one are not chosen one by one. Every option
// keeps all of them, except the option that keeps nothing.
constexpr std::int64_t kSmall = 8;

bool no_worse(const BlockOption& a, const BlockOption& b) {
  return a.kept_bytes <= b.kept_bytes && a.forward_peak <= b.forward_peak &&
         a.backward_peak <= b.backward_peak && a.forward_ms <= b.forward_ms && a.repeated_ms <= b.repeated_ms;
}

}  // namespace

void StepBlocks::find_options() {
  for (int block = 0; block < std::ssize(blocks_); ++block) find_options(block);
}

void StepBlocks::find_options(int block) {
  StepBlock& of = blocks_[block];
  using Family = std::vector<int>;
  const auto bytes_of = [&](const Family& family) {
    std::int64_t bytes = 0;
    for (const int tensor : family) bytes += model_.tensor_bytes[tensor];
    return bytes;
  };
  std::vector<Family> large = candidates_between(of.first, of.end);
  std::vector<int> small;
  std::ranges::stable_sort(large, std::greater(), bytes_of);
  while (!large.empty() && bytes_of(large.back()) * kSmall < bytes_of(large.front())) {
    small.insert(small.end(), large.back().begin(), large.back().end());
    large.pop_back();
  }
  const auto with_small = [&](const std::vector<Family>& families) {
    std::vector<int> kept = small;
    for (const Family& family : families) kept.insert(kept.end(), family.begin(), family.end());
    return kept;
  };
  const auto add = [&](const std::vector<int>& kept) { of.options.push_back(evaluate(block, kept, false)); };
  if (std::size_t{1} << std::min<std::size_t>(large.size(), 30) <= kMostSubsets) {
    for (std::size_t subset = 0; subset < std::size_t{1} << large.size(); ++subset) {
      std::vector<Family> kept;
      for (std::size_t i = 0; i < large.size(); ++i)
        if (subset >> i & 1) kept.push_back(large[i]);
      add(with_small(kept));
    }
  } else {
    // Drop one family of tensors (the slices of one tensor) after another. Always drop the family
    // that saves the least time per byte.
    std::vector<Family> kept = large;
    add(with_small(kept));
    while (!kept.empty()) {
      std::size_t best = 0;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < kept.size(); ++i) {
        std::vector<Family> without = kept;
        without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
        const double price =
            evaluate(block, with_small(without), false).repeated_ms - of.options.back().repeated_ms;
        if (const double each = price / static_cast<double>(bytes_of(kept[i])); each < least)
          best = i, least = each;
      }
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(best));
      add(with_small(kept));
    }
  }
  if (!small.empty()) add({});
  keep_best(of.options);
  of.late = evaluate(block, {}, true);
  Available available(droppable_.size(), 0);
  for (const int tensor : between_[block]) available[tensor] = 1;
  StepSchedule runs;
  append_forward(block, of.outputs, available, runs);
  for (const StepRun& run : runs) of.forward_ms += model_.operations[run.operation].ms;
  of.forward_peak = peak_of(runs, {}, of.outputs, false);
}

BlockOption StepBlocks::evaluate(int block, const std::vector<int>& kept, bool late) const {
  const StepBlock& of = blocks_[block];
  BlockOption option;
  option.kept = kept;
  option.kept_bytes = bytes_between(block + 1, block);
  for (const int tensor : kept) option.kept_bytes += model_.tensor_bytes[tensor];
  std::vector<int> all = of.outputs;
  all.insert(all.end(), kept.begin(), kept.end());
  if (!late) {
    StepSchedule once;
    for (int i = of.first; i < of.end; ++i) once.push_back({i, model_.operations[i].outputs});
    option.forward_peak = peak_of(once, {}, all, false);
    Available available(droppable_.size(), 0);
    for (const int tensor : between_[block]) available[tensor] = 1;
    StepSchedule again;
    append_forward(block, all, available, again);
    for (const StepRun& run : again) option.forward_ms += model_.operations[run.operation].ms;
  }
  std::vector<int> initial = kept;
  initial.insert(initial.end(), of.own_outputs.begin(), of.own_outputs.end());
  Available available(droppable_.size(), 0);
  for (const int tensor : between_[block]) available[tensor] = 1;
  for (const int tensor : initial) available[tensor] = 1;
  StepSchedule backward;
  append_backward(block, available, backward);
  for (const StepRun& run : backward)
    if (run.operation < forward_) option.repeated_ms += model_.operations[run.operation].ms;
  std::vector<int> last;
  for (const int tensor : gradients_) {
    if (writer_[tensor] < of.backward_first && last_read_[tensor] >= of.backward_first)
      initial.push_back(tensor);
    if (writer_[tensor] < of.backward_end && last_read_[tensor] >= of.backward_end) last.push_back(tensor);
  }
  option.backward_peak = peak_of(backward, initial, last, true);
  return option;
}

// Returns the most bytes that are live during `runs`, not counting the block's input.
std::int64_t StepBlocks::peak_of(const StepSchedule& runs, const std::vector<int>& initial,
                                 const std::vector<int>& final, bool backward) const {
  if (runs.empty()) return 0;
  // The tensors `final` are still read at the time `end`, after all runs. Thus no output of the
  // last run may reuse their buffers.
  const int end = static_cast<int>(runs.size());
  BufferLives lives(end + 1, model_.alignment);
  std::vector<int> newest(droppable_.size(), -1);
  const auto counts = [&](int tensor) {
    return model_.tensor_bytes[tensor] > 0 &&
           (writer_[tensor] >= forward_ || droppable_[tensor] || away_[tensor]);
  };
  for (const int tensor : initial)
    if (counts(tensor)) newest[tensor] = lives.add(model_.tensor_bytes[tensor], 0);
  std::vector<char> ran(static_cast<std::size_t>(forward_), backward ? 1 : 0);
  for (int at = 0; at < std::ssize(runs); ++at) {
    const int number = runs[at].operation;
    const StepOperation& operation = model_.operations[number];
    const bool again = number < forward_ && ran[number];
    std::vector<std::pair<int, int>> written;
    for (const int tensor : operation.inputs) {
      if (newest[tensor] < 0 && away_[tensor]) newest[tensor] = lives.add(model_.tensor_bytes[tensor], at);
      if (newest[tensor] >= 0) lives.use(newest[tensor], at);
    }
    for (const int tensor : again ? operation.again : operation.outputs)
      if (counts(tensor) && (writer_[tensor] == number || newest[tensor] < 0))
        written.emplace_back(tensor, lives.add(model_.tensor_bytes[tensor], at));
    for (const auto& [input, output] : operation.in_place)
      for (const auto& [tensor, buffer] : written)
        if (tensor == output && newest[input] >= 0) lives.may_share(newest[input], buffer, at);
    for (const auto& [tensor, buffer] : written)
      if (std::ranges::find(runs[at].outputs, tensor) != runs[at].outputs.end()) newest[tensor] = buffer;
    lives.add_workspace(operation.workspace, at);
  }
  for (const int tensor : final)
    if (newest[tensor] >= 0) lives.use(newest[tensor], end);
  return std::ranges::max(lives.live());
}

void StepBlocks::keep_best(std::vector<BlockOption>& options) const {
  std::vector<BlockOption> best;
  for (std::size_t i = 0; i < options.size(); ++i) {
    bool beaten = false;
    for (std::size_t j = 0; j < options.size() && !beaten; ++j)
      beaten = i != j && no_worse(options[j], options[i]) && (!no_worse(options[i], options[j]) || j < i);
    if (!beaten) best.push_back(options[i]);
  }
  options = std::move(best);
}

}  // namespace convoy::partition

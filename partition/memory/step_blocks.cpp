#include "partition/memory/step_blocks.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace convoy::partition {
namespace {

constexpr int kMostCandidates = 8;  // a block with more tensors among which to choose is split
constexpr int kMostBlocks = 96;

bool contains(const std::vector<int>& list, int value) {
  return std::ranges::find(list, value) != list.end();
}

}  // namespace

StepBlocks::StepBlocks(const StepModel& model, const std::vector<int>& away) : model_(model) {
  find_tensors();
  do cut();
  while (!assign_backward());
  leave_out(away);
  find_gradients();
  find_options();
}

void StepBlocks::find_tensors() {
  const std::size_t tensors = model_.tensor_bytes.size();
  writer_.assign(tensors, -1);
  last_forward_read_ = first_backward_read_ = last_read_ = writer_;
  droppable_.assign(tensors, 0);
  // For each tensor: how many operations write it, and how many of these can run again. The first
  // operation creates the tensor. Any other one counts as able to run again only if it also reads
  // the tensor, so that it adds to the result of the operations before it.
  std::vector<int> writes(tensors, 0), repeatable(tensors, 0);
  const auto& operations = model_.operations;
  for (int i = 0; i < std::ssize(operations); ++i) {
    const StepOperation& operation = operations[i];
    if (!operation.backward) {
      if (forward_ != i) throw std::invalid_argument("an operation of forward comes after backward began");
      ++forward_;
    }
    for (const int tensor : operation.inputs) {
      last_read_[tensor] = i;
      if (!operation.backward)
        last_forward_read_[tensor] = i;
      else if (first_backward_read_[tensor] < 0)
        first_backward_read_[tensor] = i;
    }
    for (const int tensor : operation.outputs) {
      if (++writes[tensor] == 1) writer_[tensor] = i;
      const bool follows = writes[tensor] == 1 || contains(operation.inputs, tensor);
      if (follows && contains(operation.again, tensor)) ++repeatable[tensor];
    }
  }
  for (std::size_t tensor = 0; tensor < tensors; ++tensor) {
    const int writer = writer_[tensor];
    if (model_.tensor_bytes[tensor] == 0 || writer < 0) continue;
    if (writer >= forward_)
      gradients_.push_back(static_cast<int>(tensor));
    else
      droppable_[tensor] = repeatable[tensor] == writes[tensor] ? 1 : 0;
  }
}

// Returns the droppable tensors that are written by operations up to `position`, inclusive, and
// read by later operations of forward.
std::vector<int> StepBlocks::crossing(int position) const {
  std::vector<int> found;
  for (int i = 0; i <= position; ++i)
    for (const int tensor : model_.operations[i].outputs)
      if (droppable_[tensor] && writer_[tensor] == i && last_forward_read_[tensor] > position)
        found.push_back(tensor);
  return found;
}

// Returns the droppable tensors of operations [first, end) that backward reads and no later block
// reads. An element of the result holds one tensor, or all slices of one tensor.
std::vector<std::vector<int>> StepBlocks::candidates_between(int first, int end) const {
  std::vector<std::vector<int>> candidates;
  std::map<int, std::size_t> position;  // index in `candidates` of each family (step_model.h)
  for (int i = first; i < end; ++i)
    for (const int tensor : model_.operations[i].outputs) {
      if (!droppable_[tensor] || writer_[tensor] != i) continue;
      if (first_backward_read_[tensor] < 0 || last_forward_read_[tensor] >= end) continue;
      const int family = model_.family.empty() ? tensor : model_.family[tensor];
      const auto [at, is_new] = position.emplace(family, candidates.size());
      if (is_new) candidates.emplace_back();
      candidates[at->second].push_back(tensor);
    }
  return candidates;
}

// Divides the operations of forward into blocks. Returns for each block the index after its last
// operation.
std::vector<int> StepBlocks::cuts() const {
  std::vector<int> ends;
  std::vector<int> before;
  const auto kept_anyway = [&](int tensor) { return first_backward_read_[tensor] >= 0; };
  int first = 0;
  for (int position = 0; position + 1 < forward_; ++position) {
    if (model_.operations[position + 1].joined) continue;
    std::vector<int> tensors = crossing(position);
    if (tensors.size() != 1 || tensors == before || !kept_anyway(tensors[0])) continue;
    split(first, position + 1, ends);
    first = position + 1;
    before = std::move(tensors);
  }
  split(first, forward_, ends);
  while (std::ssize(ends) > kMostBlocks) {
    int best = 0, least = forward_ + 1;
    for (int i = 0; i + 1 < std::ssize(ends); ++i)
      if (const int size = ends[i + 1] - (i == 0 ? 0 : ends[i - 1]); size < least) best = i, least = size;
    ends.erase(ends.begin() + best);
  }
  return ends;
}

// Appends the end of the block [first, end) to `ends`. A block with too many tensors among which to
// choose is split, and the ends of all parts are appended.
void StepBlocks::split(int first, int end, std::vector<int>& ends) const {
  int best = -1;
  std::int64_t least = 0;
  if (std::ssize(candidates_between(first, end)) > kMostCandidates) {
    const std::vector<int> input = first == 0 ? std::vector<int>{} : crossing(first - 1);
    for (int position = first; position + 1 < end; ++position) {
      if (model_.operations[position + 1].joined) continue;
      const std::vector<int> tensors = crossing(position);
      if (tensors == input ||
          std::ranges::none_of(tensors, [&](int t) { return first_backward_read_[t] >= 0; }))
        continue;
      std::int64_t bytes = 0;
      for (const int tensor : tensors) bytes += contains(input, tensor) ? 0 : model_.tensor_bytes[tensor];
      const auto middle = [&](int at) { return std::abs(2 * at - first - end); };
      if (best < 0 || bytes < least || (bytes == least && middle(position) < middle(best)))
        best = position, least = bytes;
    }
  }
  if (best < 0) return ends.push_back(end);
  split(first, best + 1, ends);
  split(best + 1, end, ends);
}

void StepBlocks::cut() {
  blocks_.clear();
  between_.assign(1, {});
  block_of_.assign(static_cast<std::size_t>(forward_), 0);
  for (const int end : cuts()) {
    StepBlock block;
    block.first = blocks_.empty() ? 0 : blocks_.back().end;
    block.end = end;
    for (int i = block.first; i < end; ++i) block_of_[i] = static_cast<int>(blocks_.size());
    block.outputs = end == forward_ ? std::vector<int>{} : crossing(end - 1);
    between_.push_back(block.outputs);
    blocks_.push_back(std::move(block));
  }
}

// Assigns the operations of backward to blocks, from the last block to the first, by the tensors
// that they read. Returns false if an operation reads a tensor of a block whose backward has
// already ended. Such a tensor must always be kept, so the blocks must be determined again.
bool StepBlocks::assign_backward() {
  bool in_order = true;
  int block = static_cast<int>(blocks_.size()) - 1;
  blocks_[block].backward_first = forward_;
  const auto& operations = model_.operations;
  for (int i = forward_; i < std::ssize(operations); ++i) {
    int latest = block;
    for (const int tensor : operations[i].inputs)
      if (droppable_[tensor])
        latest = std::min(latest, block_of_[std::max(writer_[tensor], last_forward_read_[tensor])]);
    while (block > latest) {
      blocks_[block].backward_end = i;
      blocks_[--block].backward_first = i;
    }
    for (const int tensor : operations[i].inputs)
      if (droppable_[tensor] && block_of_[writer_[tensor]] > block) droppable_[tensor] = 0, in_order = false;
  }
  for (; block >= 0; --block) {
    blocks_[block].backward_end = static_cast<int>(std::ssize(operations));
    if (block > 0) blocks_[block - 1].backward_first = blocks_[block].backward_end;
  }
  return in_order;
}

void StepBlocks::leave_out(const std::vector<int>& away) {
  away_.assign(droppable_.size(), 0);
  for (const int tensor : away) away_[tensor] = 1, droppable_[tensor] = 0;
  const auto is_away = [&](int tensor) { return away_[tensor] != 0; };
  for (std::vector<int>& tensors : between_) std::erase_if(tensors, is_away);
  for (StepBlock& block : blocks_) std::erase_if(block.outputs, is_away);
}

void StepBlocks::find_gradients() {
  for (std::size_t tensor = 0; tensor < droppable_.size(); ++tensor)
    if (writer_[tensor] >= 0 && writer_[tensor] < forward_ && !droppable_[tensor] && !away_[tensor] &&
        last_read_[tensor] >= forward_)
      fixed_bytes_ += model_.tensor_bytes[tensor];
  for (std::size_t at = 0; at < blocks_.size(); ++at) {
    StepBlock& block = blocks_[at];
    for (const int tensor : gradients_)
      if (writer_[tensor] < block.backward_first && last_read_[tensor] >= block.backward_first)
        block.gradient_bytes += model_.tensor_bytes[tensor];
    for (const int tensor : block.outputs) {
      if (contains(between_[at], tensor)) continue;
      const auto reads = [&](int i) { return contains(model_.operations[i].inputs, tensor); };
      bool own = false;
      for (int i = block.first; i < block.end && !own; ++i) own = reads(i);
      for (int i = block.backward_first; i < block.backward_end && !own; ++i) own = reads(i);
      if (own) block.own_outputs.push_back(tensor);
    }
  }
}

std::int64_t StepBlocks::bytes_between(int at, int base) const {
  std::int64_t bytes = 0;
  for (const int tensor : between_[at])
    if (!contains(between_[base], tensor)) bytes += model_.tensor_bytes[tensor];
  return bytes;
}

void StepBlocks::append_forward(int block, const std::vector<int>& wanted, Available& available,
                                StepSchedule& to) const {
  std::vector<int> needed;
  const auto need = [&](int tensor) {
    if (droppable_[tensor] && !available[tensor] && !contains(needed, tensor)) needed.push_back(tensor);
  };
  for (const int tensor : wanted) need(tensor);
  const auto begin = static_cast<std::ptrdiff_t>(to.size());
  for (int i = blocks_[block].end; i-- > blocks_[block].first;) {
    const StepOperation& operation = model_.operations[i];
    if (std::ranges::none_of(operation.again, [&](int tensor) { return contains(needed, tensor); })) continue;
    StepRun run{i, {}};
    for (const int tensor : operation.again)
      if (droppable_[tensor] && !available[tensor] &&
          (contains(needed, tensor) || first_backward_read_[tensor] >= 0))
        run.outputs.push_back(tensor);
    for (const int tensor : operation.inputs) need(tensor);
    to.push_back(std::move(run));
  }
  std::reverse(to.begin() + begin, to.end());
  for (auto run = to.begin() + begin; run != to.end(); ++run)
    for (const int tensor : run->outputs) available[tensor] = 1;
}

void StepBlocks::append_backward(int block, Available& available, StepSchedule& to) const {
  for (int i = blocks_[block].backward_first; i < blocks_[block].backward_end; ++i) {
    append_forward(block, model_.operations[i].inputs, available, to);
    to.push_back({i, model_.operations[i].outputs});
  }
}

}  // namespace convoy::partition

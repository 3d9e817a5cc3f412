#include "app/concurrency/interference_model.h"

#include <algorithm>
#include <array>

namespace convoy::app {
namespace {

// The largest slowdown that a measured pair may have. A larger measurement counts as this value.
constexpr double kMostSlowdown = 3;

}  // namespace

std::pair<int, int> InterferenceModel::key(int a, int b) const {
  const auto likeness = [&](int op) { return (*ops_)[static_cast<std::size_t>(op)].likeness; };
  return std::minmax({likeness(a), likeness(b)});
}

double InterferenceModel::by_capacity(std::span<const int> running) const {
  double blocks = 0, memory = 0, arithmetic = 0;
  for (const int i : running) {
    const OpLoad& op = (*ops_)[static_cast<std::size_t>(i)];
    blocks += op.blocks, memory += op.memory, arithmetic += op.arithmetic;
  }
  return std::max({1.0, blocks, memory, arithmetic});
}

double InterferenceModel::slowdown(std::span<const int> running) const {
  if (running.size() < 2) return 1;
  double sum = 0;
  int pairs = 0;
  for (std::size_t i = 0; i < running.size(); ++i)
    for (std::size_t j = 0; j < i; ++j, ++pairs) {
      const auto found = corrections_.find(key(running[i], running[j]));
      sum += found == corrections_.end() ? 1 : found->second;
    }
  return std::max(1.0, by_capacity(running) * sum / pairs);
}

double InterferenceModel::pair_ms(int a, int b) const {
  const auto [least, most] =
      std::minmax({(*ops_)[static_cast<std::size_t>(a)].ms, (*ops_)[static_cast<std::size_t>(b)].ms});
  return slowdown(std::array{a, b}) * least + most - least;
}

void InterferenceModel::learn(int a, int b, double ms) {
  const auto [least, most] =
      std::minmax({(*ops_)[static_cast<std::size_t>(a)].ms, (*ops_)[static_cast<std::size_t>(b)].ms});
  const double slowdown = std::clamp(1 + (ms - most) / least, 1.0, kMostSlowdown);
  corrections_[key(a, b)] = slowdown / by_capacity(std::array{a, b});
}

}  // namespace convoy::app

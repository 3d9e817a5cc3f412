#include "app/commands/info_within.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "app/compile/fit_memory.h"
#include "app/training/report/configuration_table.h"
#include "comm/single_rank.h"

namespace convoy::app {
namespace {

constexpr std::int64_t kTooMuch = std::int64_t{1} << 62;

// Returns the least bytes within which the network's step trains.
std::int64_t least_bytes(const NetworkRequest& request, const StepOptions& options) {
  comm::SingleRank rank;
  CompiledSteps steps = compile_steps(make_network(request), options, {&rank, &rank, nullptr});
  const std::vector<double> node_ms = estimated_node_ms(*steps.train, options);
  return MemoryFitter(steps, options, {}, node_ms, estimated_link(options)).least().bytes;
}

}  // namespace

std::int64_t LargestWithin::value(std::int64_t number) {
  if (const auto known = known_.find(number); known != known_.end()) return known->second;
  std::int64_t found = kTooMuch;
  try {
    found = value_(number);
  } catch (const std::runtime_error&) {
    // A kernel or a network that cannot be so large.
  }
  return known_[number] = found;
}

// Returns a number that is expected to be a little below the limit, from the two largest known
// numbers up to `low`.
std::int64_t LargestWithin::guess(std::int64_t limit, std::int64_t low, std::int64_t step) {
  const auto power = [&](double of) { return std::pow(of, power_); };
  const auto last = known_.find(low);
  double slope = static_cast<double>(last->second) / power(static_cast<double>(low));
  if (last != known_.begin()) {
    const auto before = std::prev(last);
    slope = static_cast<double>(last->second - before->second) /
            (power(static_cast<double>(low)) - power(static_cast<double>(before->first)));
  }
  const double room = static_cast<double>(limit - last->second) / std::max(slope, 1e-9);
  const double number = std::pow(power(static_cast<double>(low)) + 0.995 * room, 1.0 / power_);
  return static_cast<std::int64_t>(std::min(number, 1e9)) / step * step;
}

std::int64_t LargestWithin::find(std::int64_t limit, std::int64_t first, std::int64_t step,
                                 std::int64_t most) {
  std::int64_t low = 0, high = most / step * step + step;  // low fits, and high does not
  std::int64_t next = std::max(first / step, std::int64_t{1}) * step;
  while (high - low > std::max(step, low / 50)) {
    next = std::clamp(next, low + step, high - step);
    (value(next) <= limit ? low : high) = next;
    const std::int64_t middle = (low + high) / 2 / step * step;
    // Beyond four times the last number a guess would be wild.
    next = low == 0 ? middle : std::min(guess(limit, low, step), 4 * low);
    if (next >= high) next = middle;
    if (next <= low) next = low + std::max(step, low / 50 / step * step);
  }
  return low;
}

void print_within(const NetworkRequest& request, const StepOptions& options,
                  const std::vector<std::int64_t>& limits, bool json) {
  const std::int64_t size = request.size > 0 ? request.size : default_size(request.name);
  LargestWithin batches(
      [&](std::int64_t batch) {
        NetworkRequest of = request;
        of.batch = batch;
        return least_bytes(of, options);
      },
      1);
  LargestWithin sides(
      [&](std::int64_t side) {
        NetworkRequest of = request;
        of.size = side;
        return least_bytes(of, options);
      },
      2);
  if (!json)
    fmt::print("{:>12}  {:>14}  {:>14}\n", "memory", fmt::format("batch at {}", size),
               fmt::format("side at b{}", request.batch));
  for (const std::int64_t limit : limits) {
    const std::int64_t batch = batches.find(limit, 32, 1, 1 << 16),
                       side = sides.find(limit, size, 32, 1 << 13);
    if (json)
      fmt::print("{}\n", nlohmann::json({{"model", request.name},
                                         {"bytes", limit},
                                         {"size", size},
                                         {"largest_batch", batch},
                                         {"batch", request.batch},
                                         {"largest_size", side}})
                             .dump());
    else
      fmt::print("{:>12}  {:>14}  {:>14}\n", format_bytes(static_cast<std::uint64_t>(limit)), batch, side);
    std::fflush(stdout);
  }
}

}  // namespace convoy::app

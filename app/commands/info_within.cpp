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

// Returns the fewest bytes of memory with which a training step of the network can run.
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
  } catch (const std::exception& error) {
    errors_[number] = error.what();
  }
  return known_[number] = found;
}

// Guesses the largest number (for example a batch size) whose value (for example the bytes of
// memory) is within the limit. Extrapolates from two numbers with known values: `low` and the next
// smaller one. Aims a little below the limit.
std::int64_t LargestWithin::guess(std::int64_t limit, std::int64_t low) const {
  const auto power = [&](std::int64_t of) { return std::pow(static_cast<double>(of), numbers_.power); };
  const auto last = known_.find(low);
  double slope = static_cast<double>(last->second) / power(low);
  if (last != known_.begin()) {
    const auto before = std::prev(last);
    slope = static_cast<double>(last->second - before->second) / (power(low) - power(before->first));
  }
  const double room = static_cast<double>(limit - last->second) / std::max(slope, 1e-9);
  const double number = std::pow(power(low) + 0.995 * room, 1.0 / numbers_.power);
  return static_cast<std::int64_t>(std::min(number, 1e9)) / numbers_.step * numbers_.step;
}

// Returns the nearest number at or below `number` for which Numbers::possible returns true, or else
// the nearest such number above. Searches only between `low` and `high`. Returns 0 if there is
// none.
std::int64_t LargestWithin::nearest_possible(std::int64_t number, std::int64_t low, std::int64_t high) const {
  if (!numbers_.possible) return number;
  for (std::int64_t below = number; below > low; below -= numbers_.step)
    if (numbers_.possible(below)) return below;
  for (std::int64_t above = number; above < high; above += numbers_.step)
    if (numbers_.possible(above)) return above;
  return 0;
}

LargestWithin::Found LargestWithin::find(std::int64_t limit, std::int64_t first) {
  const std::int64_t step = numbers_.step;
  // `low` is the largest number known to be within the limit; 0 if none is known. `high` is a
  // larger number that cannot be the result: its value exceeds the limit, or it exceeds
  // Numbers::most.
  std::int64_t low = 0, high = numbers_.most / step * step + step;
  for (const auto& [number, bytes] : known_)
    if (bytes <= limit) low = number;
  if (const auto above = known_.upper_bound(low); above != known_.end()) high = above->first;
  std::int64_t next = low > 0 ? guess(limit, low) : std::max(first / step, std::int64_t{1}) * step;
  while (high - low > std::max(step, low / 50)) {
    if (next >= high) next = (low + high) / 2 / step * step;
    next = nearest_possible(std::clamp(next, low + step, high - step), low, high);
    if (next == 0) break;
    (value(next) <= limit ? low : high) = next;
    // Try at most four times the largest number that fits, because a larger guess would be too
    // inaccurate.
    next = low == 0 ? (low + high) / 2 / step * step : std::min(guess(limit, low), 4 * low);
    if (next <= low) next = low + std::max(step, low / 50 / step * step);
  }
  if (high > numbers_.most) return {low, fmt::format("the search ends at {}", numbers_.most)};
  const auto error = errors_.find(high);
  return {low, error == errors_.end() ? "" : error->second};
}

namespace {

// The largest batch and the largest side of images, in pixels, that are tried. Searches end there
// even if memory is left.
constexpr std::int64_t kMostBatch = 1 << 20, kMostSide = 1 << 16;
// The layers of many networks halve a side five times, so only multiples of 2^5 pixels are tried.
constexpr std::int64_t kSideStep = 32;

bool exists(const NetworkRequest& request) {
  try {
    make_network(request);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

nlohmann::json json_of(const LargestWithin::Found& found) {
  return found.bound.empty() ? "memory" : found.bound;
}

}  // namespace

void print_within(const NetworkRequest& request, const StepOptions& options, std::vector<std::int64_t> limits,
                  bool json) {
  std::ranges::sort(limits);
  const std::int64_t size = request.size > 0 ? request.size : default_size(request.name);
  const auto of_batch = [&](std::int64_t batch) {
    NetworkRequest of = request;
    of.batch = batch;
    return of;
  };
  const auto of_side = [&](std::int64_t side) {
    NetworkRequest of = request;
    of.size = side;
    return of;
  };
  LargestWithin batches([&](std::int64_t batch) { return least_bytes(of_batch(batch), options); },
                        {.most = kMostBatch});
  LargestWithin sides([&](std::int64_t side) { return least_bytes(of_side(side), options); },
                      {.step = kSideStep, .most = kMostSide, .power = 2, .possible = [&](std::int64_t side) {
                         return exists(of_side(side));
                       }});
  if (!json)
    fmt::print("{:>12}  {:>14}  {:>14}\n", "memory", fmt::format("batch at {}", size),
               fmt::format("side at b{}", request.batch));
  std::string notes;
  for (const std::int64_t limit : limits) {
    const LargestWithin::Found batch = batches.find(limit, 32), side = sides.find(limit, size);
    if (json)
      fmt::print("{}\n", nlohmann::json({{"model", request.name},
                                         {"bytes", limit},
                                         {"size", size},
                                         {"largest_batch", batch.number},
                                         {"batch_bound", json_of(batch)},
                                         {"batch", request.batch},
                                         {"largest_size", side.number},
                                         {"size_bound", json_of(side)}})
                             .dump());
    else
      fmt::print("{:>12}  {:>14}  {:>14}\n", format_bytes(static_cast<std::uint64_t>(limit)), batch.number,
                 side.number);
    std::fflush(stdout);
    for (const auto& [name, found] : {std::pair("batch", &batch), std::pair("side", &side)})
      if (!found->bound.empty())
        notes += fmt::format("{}: the {} is not limited by memory: {}\n",
                             format_bytes(static_cast<std::uint64_t>(limit)), name, found->bound);
  }
  if (!json && !notes.empty()) fmt::print("\n{}", notes);
}

}  // namespace convoy::app

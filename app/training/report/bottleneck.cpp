#include "app/training/report/bottleneck.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "app/median.h"

namespace convoy::app {
namespace {

template <typename Get>
std::vector<double> column(std::span<const RankTimes> ranks, Get get) {
  std::vector<double> values;
  for (const RankTimes& rank : ranks) values.push_back(get(rank));
  return values;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

Bottleneck find_bottleneck(std::span<const RankTimes> ranks) {
  const auto compute = column(ranks, [](const RankTimes& rank) { return rank.compute_ms; });
  const auto input = column(ranks, [](const RankTimes& rank) { return rank.data_wait_ms; });
  const auto busy = column(ranks, [](const RankTimes& rank) { return rank.compute_ms + rank.data_wait_ms; });
  const auto exposed = column(ranks, [](const RankTimes& rank) { return rank.exposed_comm_ms; });
  const auto slowest = std::ranges::max_element(busy) - busy.begin();
  const auto at = static_cast<std::size_t>(slowest);

  Bottleneck result;
  result.step_ms = mean(column(ranks, [](const RankTimes& rank) { return rank.step_ms; }));
  result.communication_ms = *std::ranges::min_element(exposed);
  // Use the lower median. With two ranks it is the time of the faster one, so that the extra time
  // of the slower one counts as stragglers.
  result.compute_ms = lower_median(compute);
  result.input_ms = std::max(lower_median(busy) - result.compute_ms, 0.0);
  result.slowest_rank = static_cast<int>(slowest);
  result.slowest_behind_ms = busy[at] - lower_median(busy);
  result.stragglers_ms =
      std::max(result.step_ms - result.communication_ms - result.compute_ms - result.input_ms, 0.0);
  result.slowest_awaits_data = input[at] - lower_median(input) > result.slowest_behind_ms / 2;
  const std::array<std::pair<double, const char*>, 4> parts{{{result.compute_ms, "compute"},
                                                             {result.communication_ms, "communication"},
                                                             {result.input_ms, "input"},
                                                             {result.stragglers_ms, "stragglers"}}};
  result.limit = std::ranges::max_element(parts, {}, &std::pair<double, const char*>::first)->second;
  return result;
}

std::string describe(const Bottleneck& b, std::span<const RankPlace> places) {
  const auto share = [&](double ms) { return b.step_ms > 0 ? 100 * ms / b.step_ms : 0.0; };
  const double largest = std::max({b.compute_ms, b.communication_ms, b.input_ms, b.stragglers_ms});
  std::string line =
      fmt::format("limited by {}: {:.0f} % of a step of {:.2f} ms", b.limit, share(largest), b.step_ms);
  const auto other = [&](const char* what, const char* words, double ms) {
    if (b.limit != what)
      line += fmt::format("{} {} {:.0f} %", line.find(';') == line.npos ? ";" : ",", words, share(ms));
  };
  other("compute", "compute", b.compute_ms);
  other("communication", "exposed communication", b.communication_ms);
  other("input", "input", b.input_ms);
  if (places.size() < 2) return line;
  other("stragglers", "stragglers", b.stragglers_ms);
  const std::size_t slowest = static_cast<std::size_t>(b.slowest_rank);
  return line + fmt::format(" (slowest: rank {} on {}, {:.2f} ms behind the median{})", b.slowest_rank,
                            places[slowest].host, b.slowest_behind_ms,
                            b.slowest_awaits_data ? ", waiting for its data" : "");
}

std::vector<RankTimes> gather_rank_times(const comm::Communicator& ranks, const RankTimes& mine) {
  const std::array<double, 4> values{mine.step_ms, mine.compute_ms, mine.exposed_comm_ms, mine.data_wait_ms};
  std::vector<double> all(ranks.rank() == 0 ? values.size() * static_cast<std::size_t>(ranks.size()) : 0);
  ranks.gather(std::span<const double>(values), std::span<double>(all), 0, "times of the ranks");
  std::vector<RankTimes> result;
  for (std::size_t i = 0; i < all.size(); i += values.size())
    result.push_back({all[i], all[i + 1], all[i + 2], all[i + 3]});
  return result;
}

}  // namespace convoy::app

#include "app/runtime/link_costs.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace convoy::app {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kSmall = 64, kLarge = 1 << 20;  // bytes
constexpr int kRounds = 7;

// One way, the best of some rounds: a message that waits for a busy processor says nothing of the link.
double measure_message(comm::Collectives& ranks, int a, int b, std::byte* buffer, std::int64_t bytes) {
  const int peer = ranks.rank() == a ? b : a;
  const auto send = ranks.prepare_send(buffer, bytes, comm::DType::u8, peer, "link probe");
  const auto receive = ranks.prepare_receive(buffer, bytes, comm::DType::u8, peer, "link probe");
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = Clock::now();
    for (const auto* operation :
         {ranks.rank() == a ? &send : &receive, ranks.rank() == a ? &receive : &send}) {
      (*operation)->start(nullptr);
      (*operation)->wait(nullptr);
    }
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - start).count() / 2);
  }
  return best;
}

}  // namespace

std::vector<std::vector<LinkCost>> measure_links(comm::Collectives& ranks) {
  const int size = ranks.size();
  const auto count = static_cast<std::size_t>(size);
  std::vector<double> measured(count * count * 2, 0);
  std::vector<std::byte> buffer(kLarge);
  for (int a = 0; a < size; ++a)
    for (int b = a + 1; b < size; ++b) {
      const auto place = (static_cast<std::size_t>(a) * count + static_cast<std::size_t>(b)) * 2;
      if (ranks.rank() == a || ranks.rank() == b) {
        const double small = measure_message(ranks, a, b, buffer.data(), kSmall);
        const double large = measure_message(ranks, a, b, buffer.data(), kLarge);
        if (ranks.rank() == a) measured[place] = small, measured[place + 1] = large;
      }
    }
  ranks.all_reduce(measured.data(), std::ssize(measured), comm::DType::f64, comm::ReduceOp::sum, nullptr,
                   "link costs");
  std::vector<std::vector<LinkCost>> costs(count, std::vector<LinkCost>(count));
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b) {
      const double small = measured[(a * count + b) * 2], large = measured[(a * count + b) * 2 + 1];
      const double bytes_per_ms = (kLarge - kSmall) / std::max(large - small, 1e-3);
      costs[a][b] = costs[b][a] = {small, bytes_per_ms};
    }
  return costs;
}

}  // namespace convoy::app

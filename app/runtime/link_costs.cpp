#include "app/runtime/link_costs.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>

#include "kernels/device/arena.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kSmall = 64;  // bytes
constexpr int kRounds = 7;

// Bytes; enough for the link to be what is measured.
std::int64_t large_message(kernels::Backend backend) {
  return backend == kernels::Backend::cuda ? 32 << 20 : 1 << 20;
}

// One way, the best of some rounds: a message that waits for a busy processor says nothing of the link.
double measure_message(comm::Collectives& ranks, kernels::Backend backend, int a, int b, std::byte* buffer,
                       std::int64_t bytes) {
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
      kernels::synchronize(backend);
    }
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - start).count() / 2);
  }
  return best;
}

// What is left to wait for when both ends have long been busy with something else: a transport that moves data by itself
// leaves nothing, one in which the receiver copies leaves all of it.
double measure_late_receive(comm::Collectives& ranks, int a, int b, std::byte* buffer, std::int64_t bytes,
                            double message_ms) {
  const bool sends = ranks.rank() == a;
  const int peer = sends ? b : a;
  const auto message = sends ? ranks.prepare_send(buffer, bytes, comm::DType::u8, peer, "link probe")
                             : ranks.prepare_receive(buffer, bytes, comm::DType::u8, peer, "link probe");
  const auto ready = sends ? ranks.prepare_receive(buffer, kSmall, comm::DType::u8, peer, "link probe")
                           : ranks.prepare_send(buffer, kSmall, comm::DType::u8, peer, "link probe");
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    // As a step has it: what is sent has just been written, and the receive is there before it.
    if (sends)
      std::fill_n(buffer, bytes, static_cast<std::byte>(round));
    else
      message->start(nullptr);
    ready->start(nullptr);
    ready->wait(nullptr);
    if (sends) message->start(nullptr);
    const auto busy_until = Clock::now() + std::chrono::duration<double, std::milli>(3 * message_ms);
    while (Clock::now() < busy_until) {
    }
    const auto start = Clock::now();
    message->wait(nullptr);
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return best;
}

}  // namespace

void sum_values(comm::Collectives& ranks, kernels::Backend backend, std::span<double> values,
                std::string_view label) {
  const kernels::Arena memory(backend, values.size_bytes());
  kernels::copy_in(backend, memory.data(), values.data(), values.size_bytes());
  ranks.all_reduce(memory.data(), std::ssize(values), comm::DType::f64, comm::ReduceOp::sum, nullptr, label);
  kernels::copy_out(backend, values.data(), memory.data(), values.size_bytes());
}

std::vector<std::vector<LinkCost>> measure_links(comm::Collectives& ranks, kernels::Backend backend,
                                                 int among, bool transfers) {
  const std::int64_t large_bytes = large_message(backend);
  const auto count = static_cast<std::size_t>(among);
  std::vector<double> measured(count * count * 3, 0);
  const auto bytes = static_cast<std::size_t>(large_bytes);
  const std::shared_ptr<std::byte> shared = transfers ? ranks.transfer_memory(bytes) : nullptr;
  const kernels::Arena own(backend, shared ? 0 : bytes);
  std::byte* const buffer = shared ? shared.get() : own.data();
  for (int a = 0; a < among; ++a)
    for (int b = a + 1; b < among; ++b) {
      const auto place = (static_cast<std::size_t>(a) * count + static_cast<std::size_t>(b)) * 3;
      if (ranks.rank() == a || ranks.rank() == b) {
        const double small = measure_message(ranks, backend, a, b, buffer, kSmall);
        const double large = measure_message(ranks, backend, a, b, buffer, large_bytes);
        // A device moves data by itself.
        const double late = backend == kernels::Backend::cuda
                                ? 0
                                : measure_late_receive(ranks, a, b, buffer, large_bytes, large);
        if (ranks.rank() == a) measured[place] = small, measured[place + 1] = large;
        if (ranks.rank() == b) measured[place + 2] = late;
      }
    }
  sum_values(ranks, backend, measured, "link costs");
  std::vector<std::vector<LinkCost>> costs(count, std::vector<LinkCost>(count));
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b) {
      const double* of_pair = &measured[(a * count + b) * 3];
      const double small = of_pair[0], large = of_pair[1], late = of_pair[2];
      const double bytes_per_ms = static_cast<double>(large_bytes - kSmall) / std::max(large - small, 1e-3);
      costs[a][b] =
          costs[b][a] = {small, bytes_per_ms, std::min(1.0, late / large), backend == kernels::Backend::cuda};
    }
  return costs;
}

}  // namespace convoy::app

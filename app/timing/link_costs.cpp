#include "app/timing/link_costs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "app/median.h"
#include "app/timing/launch_timer.h"
#include "kernels/add/add.h"
#include "kernels/device/arena.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kSmall = 64;  // bytes of a small message
constexpr int kRounds = 7;

// Returns the bytes of a large message, whose time depends mainly on the rate of the link and which
// does not fit into a device's caches.
std::int64_t large_message(kernels::Backend backend) {
  return backend == kernels::Backend::cuda ? 64 << 20 : 1 << 20;
}

// Sends a message from one rank to another, and then an answer of the same size back.
class Exchange {
 public:
  Exchange(comm::Collectives& ranks, int a, int b, std::byte* buffer, std::int64_t bytes) {
    const int peer = ranks.rank() == a ? b : a;
    auto send = ranks.prepare_send(buffer, bytes, comm::DType::u8, peer, "link probe");
    auto receive = ranks.prepare_receive(buffer, bytes, comm::DType::u8, peer, "link probe");
    ways_[ranks.rank() == a ? 0 : 1] = std::move(send);
    ways_[ranks.rank() == a ? 1 : 0] = std::move(receive);
  }
  void run(kernels::Stream stream, const kernels::Launch& meanwhile = {}) const {
    for (const auto& way : ways_) {
      way->start(stream);
      if (meanwhile) meanwhile(stream);
      way->wait(stream);
    }
  }

 private:
  std::array<std::unique_ptr<comm::PreparedOperation>, 2> ways_;
};

// Returns the milliseconds of a message in one direction. Takes the best of some rounds, because a
// message that waits for a busy processor tells nothing about the link.
double measure_message(const Exchange& exchange) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = Clock::now();
    exchange.run({});
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - start).count() / 2);
  }
  return best;
}

// Returns the milliseconds of an operation in a captured graph, which runs it several times.
double measure_captured(const kernels::Launch& operation) {
  constexpr int kTimes = 8;
  operation({});  // The first run makes connections, which cannot be made during capture.
  kernels::synchronize(kernels::Backend::cuda);
  const auto timer = make_cuda_launch_timer(std::vector(kTimes, operation));
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) rounds.push_back(timer->undivided_round() / kTimes);
  return median(rounds);
}
// Returns the milliseconds of a message in one direction while each device runs `meanwhile`.
double measure_captured(const Exchange& exchange, const kernels::Launch& meanwhile = {}) {
  return measure_captured([&](kernels::Stream stream) { exchange.run(stream, meanwhile); }) / 2;
}

// Keeps a device's memory busy while messages are timed, as most operations of a step do.
class MemoryLoad {
 public:
  MemoryLoad() : memory_(kernels::Backend::cuda, 3 * kBytes) {
    const kernels::TensorDesc flat{
        kernels::DType::f32, {kBytes / std::int64_t{sizeof(float)}}, kernels::Layout::row_major, nullptr};
    kernels::KernelRequest request{{flat, flat}, {flat}};
    const std::array<void*, 2> terms{memory_.data(), memory_.data() + kBytes};
    const std::array<void*, 1> sum{memory_.data() + 2 * kBytes};
    addition_ = kernels::add_forward(kernels::Backend::cuda, {}, request).bind({terms, sum, nullptr});
    const auto timer = make_cuda_launch_timer({addition_});
    timer->undivided_round();
    ms_ = timer->undivided_round();
  }
  // Returns a launch that repeats addition_, at most 200 times, so that it takes about `ms`
  // milliseconds.
  kernels::Launch lasting(double ms) const {
    constexpr double kMost = 200;
    return [this, times = static_cast<int>(std::min(ms / ms_, kMost))](kernels::Stream stream) {
      for (int i = 0; i < times; ++i) addition_(stream);
    };
  }

 private:
  static constexpr std::int64_t kBytes = 32 << 20;
  kernels::Arena memory_;
  kernels::Launch addition_;
  double ms_ = 0;
};

// Measures whether the receiver has to copy a message itself. Both ends compute for longer than the
// message needs, and only then wait. Returns the milliseconds of the wait: about 0 if the transport
// moves data by itself, else the time of the message.
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
    // Do as in a step: the sender has just written the message, and the receiver starts to receive
    // before the sender starts to send.
    if (sends)
      std::fill_n(buffer, bytes, static_cast<std::byte>(round));
    else
      message->start({});
    ready->start({});
    ready->wait({});
    if (sends) message->start({});
    const auto busy_until = Clock::now() + std::chrono::duration<double, std::milli>(3 * message_ms);
    while (Clock::now() < busy_until) {
    }
    const auto start = Clock::now();
    message->wait({});
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return best;
}

}  // namespace

void sum_values(comm::Collectives& ranks, kernels::Backend backend, std::span<double> values,
                std::string_view label) {
  const kernels::Arena memory(backend, values.size_bytes());
  kernels::copy_in(backend, memory.data(), values.data(), values.size_bytes());
  ranks.all_reduce(memory.data(), std::ssize(values), comm::DType::f64, comm::ReduceOp::sum, {}, label);
  kernels::copy_out(backend, values.data(), memory.data(), values.size_bytes());
}

double measure_small_sum(comm::Collectives& ranks) {
  constexpr std::int64_t kCount = 8;
  const kernels::Arena memory(kernels::Backend::cuda, kCount * sizeof(double));
  kernels::clear(kernels::Backend::cuda, memory.data(), kCount * sizeof(double), {});
  const auto sum = ranks.prepare_all_reduce(memory.data(), kCount, comm::DType::f64, "link probe");
  return measure_captured([&](kernels::Stream stream) {
    sum->start(stream);
    sum->wait(stream);
  });
}

std::vector<std::vector<LinkCost>> measure_links(comm::Collectives& ranks, kernels::Backend backend,
                                                 int among) {
  const std::int64_t large_bytes = large_message(backend);
  const auto count = static_cast<std::size_t>(among);
  std::vector<double> measured(count * count * 3, 0);
  const auto bytes = static_cast<std::size_t>(large_bytes);
  const std::shared_ptr<std::byte> shared = ranks.transfer_memory(bytes);
  const kernels::Arena own(backend, shared ? 0 : bytes);
  std::byte* const buffer = shared ? shared.get() : own.data();
  std::optional<MemoryLoad> load;
  if (backend == kernels::Backend::cuda) load.emplace();
  for (int a = 0; a < among; ++a)
    for (int b = a + 1; b < among; ++b) {
      const auto slot = (static_cast<std::size_t>(a) * count + static_cast<std::size_t>(b)) * 3;
      if (ranks.rank() == a || ranks.rank() == b) {
        const Exchange small_exchange(ranks, a, b, buffer, kSmall),
            large_exchange(ranks, a, b, buffer, large_bytes);
        double small = 0, large = 0, late = 0;
        // GPUs move messages while they compute, so only hosts need to measure a late receive.
        if (load) {
          small = measure_captured(small_exchange);
          large = measure_captured(large_exchange, load->lasting(measure_captured(large_exchange)));
        } else {
          small = measure_message(small_exchange);
          large = measure_message(large_exchange);
          late = measure_late_receive(ranks, a, b, buffer, large_bytes, large);
        }
        if (ranks.rank() == a) measured[slot] = small, measured[slot + 1] = large;
        if (ranks.rank() == b) measured[slot + 2] = late;
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

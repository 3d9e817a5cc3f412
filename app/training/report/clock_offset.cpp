#include "app/training/report/clock_offset.h"

#include <chrono>
#include <limits>

#include "comm/collectives.h"

namespace convoy::app {
namespace {

constexpr int kExchanges = 20;

double now_ns() {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                 std::chrono::steady_clock::now().time_since_epoch())
                                 .count());
}

void send(comm::Collectives& ranks, double value, int peer) {
  ranks.send(&value, 1, kernels::DType::f64, peer, {}, "clock");
}

double receive(comm::Collectives& ranks, int peer) {
  double value = 0;
  ranks.receive(&value, 1, kernels::DType::f64, peer, {}, "clock");
  return value;
}

ClockOffset ask(comm::Collectives& ranks, int peer) {
  ClockOffset best{0, std::numeric_limits<double>::infinity()};
  for (int i = 0; i < kExchanges; ++i) {
    const double sent = now_ns();
    send(ranks, sent, peer);
    const double there = receive(ranks, peer), answered = now_ns();
    if (const double error = (answered - sent) / 2; error < best.error_ns)
      best = {there - (sent + error), error};
  }
  return best;
}

}  // namespace

std::vector<ClockOffset> measure_clock_offsets(const comm::Communicator& world) {
  const auto ranks = comm::make_mpi_collectives(world);
  std::vector<double> flat(2 * static_cast<std::size_t>(world.size()), 0.0);
  for (int rank = 1; rank < world.size(); ++rank) {
    if (world.rank() == 0) {
      const ClockOffset offset = ask(*ranks, rank);
      flat[2 * static_cast<std::size_t>(rank)] = offset.ns,
               flat[2 * static_cast<std::size_t>(rank) + 1] = offset.error_ns;
    } else if (world.rank() == rank) {
      for (int i = 0; i < kExchanges; ++i) {
        receive(*ranks, 0);
        send(*ranks, now_ns(), 0);
      }
    }
  }
  world.broadcast(std::span<double>(flat), 0, "clocks");
  std::vector<ClockOffset> offsets;
  for (std::size_t i = 0; i < flat.size(); i += 2) offsets.push_back({flat[i], flat[i + 1]});
  return offsets;
}

}  // namespace convoy::app

// What all communicators of one process share: the watchdog's registry, the counters, the limits.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/watchdog/wait_registry.h"

namespace convoy::comm {

enum class CollectiveKind : std::uint8_t {
  broadcast,
  all_reduce,
  reduce,
  gather,
  scatter,
  all_gather,
  barrier,
  send,
  receive,
};
inline constexpr std::size_t kCollectiveKinds = 9;
const char* name_of(CollectiveKind kind);

struct CollectiveCounter {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;  // of this rank's buffers
  double seconds = 0;       // spent inside the calls, waiting included
};
using CollectiveCounters = std::array<CollectiveCounter, kCollectiveKinds>;

struct CommContext {
  WaitRegistry waits;
  CollectiveCounters counters;
  // A message is cut into pieces of at most this many bytes: MPI counts in int, and some transports fail
  // beyond 2 GiB.
  std::int64_t piece_bytes = std::int64_t{1} << 30;
  // Before every blocking collective the ranks compare what they are about to call, and all of them throw
  // when they disagree. Costs one small all-reduce a call; for tests and for hunting a hang.
  bool compare_calls = false;
  std::atomic<bool> inside_mpi = false;
};

// Around every call into MPI: adds to the counters, and refuses a second thread (MPI is initialised for one
// thread at a time) with std::logic_error.
class MpiSection {
 public:
  MpiSection(CommContext& context, CollectiveKind kind);
  ~MpiSection();
  MpiSection(const MpiSection&) = delete;
  MpiSection& operator=(const MpiSection&) = delete;

 private:
  CommContext& context_;
  CollectiveKind kind_;
  Clock::time_point start_;
};

void count_call(CommContext& context, CollectiveKind kind, std::int64_t bytes);

}  // namespace convoy::comm

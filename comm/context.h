// What all communicators of one process share: the watchdog's registry and the limits.
#pragma once

#include <atomic>
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
const char* name_of(CollectiveKind kind);

struct CommContext {
  WaitRegistry waits;
  // A message is cut into pieces of at most this many bytes: MPI counts in int, and some transports fail
  // beyond 2 GiB.
  std::int64_t piece_bytes = std::int64_t{1} << 30;
  std::atomic<bool> inside_mpi = false;
};

// Around every call into MPI: refuses a second thread (MPI is initialised for one thread at a time) with
// std::logic_error.
class MpiSection {
 public:
  explicit MpiSection(CommContext& context);
  ~MpiSection();
  MpiSection(const MpiSection&) = delete;
  MpiSection& operator=(const MpiSection&) = delete;

 private:
  CommContext& context_;
};

}  // namespace convoy::comm

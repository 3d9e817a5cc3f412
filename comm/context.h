// State that all communicators of one process share: the waits that the watchdog observes, and
// limits on calls of MPI.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

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
  // Messages are cut into chunks of at most this many bytes, because MPI counts in int and some
  // transports fail beyond 2 GiB.
  std::int64_t chunk_bytes = std::int64_t{1} << 30;
  std::atomic<bool> inside_mpi = false;
  // Held while a communicator is made or freed. Jobs of one process have threads of their own, and
  // their communicators of one rank call MPI only then.
  std::recursive_mutex making;
};

// Every call into MPI is made while an object of this class lives. The constructor throws
// std::logic_error if another thread is inside MPI, because MPI is initialised for one thread at a
// time.
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

// Simulates clients event by event. A client is one of several jobs that share a device. All rules,
// with examples, are in docs/sharing_simulation.md under "What happens when". In short:
//
// - The data of a client are copied to the device. Its kernels run one after the other with idle
//   gaps between them. Its results are copied back. Each engine (copies in, compute, copies back)
//   does one thing at a time without interruption. All engines work at the same time.
// - A policy (policies.h) chooses the order in which clients are admitted. No client overtakes
//   another.
// - A client holds its memory from the start of its copy in to the end of its copy back. If the
//   next client lacks memory, clients in a gap are evicted to the host, completely or in part. They
//   return in time for their next kernel.
//
// The model is a flow shop whose buffer is the memory. With a memory limit the best order is
// NP-hard to find (Kumar, Eyraud-Dubois & Krishnamoorthy, "Performance Models for Data Transfers: A
// Case Study with Molecular Chemistry Kernels", ICPP 2019). PipeSwitch (Bai et al., OSDI 2020),
// Gandiva (Xiao et al., OSDI 2018), Salus (Yu & Chowdhury, MLSys 2020) and Zico (Lim et al., ATC
// 2021) also prefetch or swap, but they decide as events come. The policies here know all clients
// beforehand.
#pragma once

#include <functional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "partition/sharing/clients.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition::sharing {

enum class Prefetch { kOff, kOn };
enum class EngineTask { kCopyIn, kKernel, kCopyBack, kEvict, kReturn };

// A period in which one engine does one piece of work without interruption.
struct EngineInterval {
  EngineTask task = EngineTask::kKernel;
  ClientIndex client = 0;
  std::int32_t engine = 0;  // index of the compute engine; 0 for copies
  std::int32_t kernel = 0;  // index of the client's kernel
  Nanoseconds start = 0, end = 0;
  Bytes bytes = 0;  // bytes of a copy
};

struct ClientSchedule {
  Nanoseconds makespan = 0;        // time when the last client has left
  std::vector<ClientIndex> order;  // clients in the order of admission
  // Total time of all copies, including evictions and returns.
  Nanoseconds copy_in_busy = 0, copy_back_busy = 0;
  std::vector<Nanoseconds> compute_busy;  // busy time of each compute engine
  Bytes swapped_bytes = 0;                // bytes that were evicted, not counting their return
  Bytes peak_bytes = 0;
  std::vector<EngineInterval> intervals;  // intervals by start; only with Detail::kAll
  std::vector<MemorySample> memory;       // samples by ascending time; only with Detail::kAll
};

// The work that is left at some time of a simulation. Bounds (bound.h) are computed from it.
struct RemainingWork {
  Nanoseconds now = 0;
  Nanoseconds compute = 0;    // remaining kernels of admitted clients, summed over engines
  Nanoseconds copy_back = 0;  // remaining copies of admitted clients to the host
  // Remaining time of kernels and copies back of the admitted clients that need more than half of
  // the memory (Workload::large()), as far as they have not begun.
  Nanoseconds large_hold = 0;
};

// A simulation in which the caller chooses the clients one by one. Copy the object to try several
// choices.
class ClientSimulation {
 public:
  ClientSimulation(const Workload& workload, Prefetch prefetch, Detail detail);

  // Runs until the copy engine is free for a new client, and returns true. When all clients have
  // been admitted, runs to the end and returns false.
  bool advance();
  // Admits a client. The last call of advance() must have returned true. Admit each client once.
  void admit(ClientIndex client);

  RemainingWork remaining_work() const;
  Nanoseconds makespan() const { return schedule_.makespan; }
  ClientSchedule finish() && { return std::move(schedule_); }  // requires that advance() returned false

 private:
  using Rank = std::int32_t;  // number of a client in the order of admission
  enum class State : std::uint8_t {
    kQueued,    // waits for its copy to the device
    kArriving,  // is being copied to the device, for the first time or again
    kReady,     // its next kernel may start
    kRunning,
    kIdle,      // in a gap between kernels, with all its bytes on the device
    kLeaving,   // its eviction is queued or running
    kOut,       // evicted, at least in part
    kFinished,  // has ended its last kernel
  };
  enum class Happening : std::uint8_t { kArrived, kKernelEnded, kGapEnded, kEvicted, kCopiedBack, kNothing };
  struct Event {
    Nanoseconds time;
    Rank rank;
    Happening what;
    auto operator<=>(const Event&) const = default;
  };
  struct Job {
    ClientIndex client = 0;
    State state = State::kQueued;
    std::int32_t kernel = 0, engine = 0;
    // The bytes of the client that are on the device, and the part of them that is being evicted.
    Bytes resident = 0, leaving = 0;
    Nanoseconds ready = 0;  // end of the client's gap
  };
  struct Departure {  // a request to copy to the host
    Nanoseconds requested;
    Rank rank;
    auto operator<=>(const Departure&) const = default;
  };
  template <typename T>
  using Earliest = std::priority_queue<T, std::vector<T>, std::greater<T>>;

  const Client& client_of(Rank rank) const { return workload_->client(jobs_[rank].client); }
  Nanoseconds evict_time(Rank rank, Bytes bytes) const;
  Nanoseconds return_time(Rank rank, Bytes bytes) const;
  Nanoseconds latest_return(Rank rank) const;
  bool return_is_due() const;
  bool may_be_evicted(Rank rank, Bytes bytes, bool for_return) const;

  void process(const Event& event);
  void end_arrival(Rank rank);
  void end_kernel(Rank rank);
  void end_eviction(Rank rank);
  void leave(Rank rank);
  void start_work();
  void start_kernel();
  void start_arrival();
  void start_copy(Rank rank);
  void start_departure();
  bool make_room(Bytes need, Rank rank);
  void evict(Rank rank, Bytes bytes);
  void use_memory(Bytes bytes);
  void happen(Nanoseconds time, Rank rank, Happening what) { events_.push({time, rank, what}); }
  void record(const EngineInterval& interval);

  const Workload* workload_;
  Prefetch prefetch_;
  Detail detail_;
  Nanoseconds now_ = 0;
  std::vector<Job> jobs_;  // admitted clients in the order of admission
  Earliest<Event> events_;
  Earliest<Rank> ready_;
  Earliest<std::int32_t> free_engines_;
  Earliest<Departure> departures_;
  std::vector<Rank> idle_, out_;         // ranks of clients in state kIdle and kOut, ascending
  std::vector<Nanoseconds> engine_end_;  // end of the last kernel of each compute engine
  // `waiting_` is true if the client that was admitted last still waits for its copy to the device.
  bool copy_in_free_ = true, copy_back_free_ = true, waiting_ = false;
  std::int32_t on_device_ = 0;
  Bytes free_ = 0, leaving_ = 0;  // `leaving_` counts bytes that are on their way to the host
  // Total times of work of the admitted clients that has not begun: compute_left_ of kernels,
  // copy_back_left_ of copies to the host including evictions, and large_left_ of kernels and
  // copies back of the clients that need more than half of the memory.
  Nanoseconds compute_left_ = 0, copy_back_left_ = 0, large_left_ = 0;
  Nanoseconds copy_back_end_ = 0;
  ClientSchedule schedule_;
};

// Simulates the clients with admission in this order. `order` must contain each client once.
ClientSchedule simulate(const Workload& workload, std::span<const ClientIndex> order, Prefetch prefetch,
                        Detail detail = Detail::kTimes);

}  // namespace convoy::partition::sharing

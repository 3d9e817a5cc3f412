// Simulates clients (jobs that share one device), event by event. "What happens when" in
// docs/sharing_simulation.md has all rules, with examples. In short:
//
// - A client's data are copied in, its kernels run one after the other with idle gaps between
//   them, and its results are copied back. Each engine (copies in, compute, copies back) does one
//   thing at a time, without interruption; all engines work at the same time.
// - A policy (policies.h) chooses the order in which clients are admitted. None overtakes another.
// - A client holds its memory from the start of its copy in to the end of its copy back. If the
//   next client lacks memory, clients in a gap are evicted to the host, wholly or in part, and
//   return in time for their next kernel.
//
// The model is a flow shop whose buffer is the memory. With a memory limit the best order is
// NP-hard to find (Kumar, Eyraud-Dubois & Krishnamoorthy, "Performance Models for Data Transfers: A
// Case Study with Molecular Chemistry Kernels", ICPP 2019). PipeSwitch (Bai et al., OSDI 2020),
// Gandiva (Xiao et al., OSDI 2018), Salus (Yu & Chowdhury, MLSys 2020) and Zico (Lim et al., ATC
// 2021) also prefetch or swap, but decide as events come; the policies here know all clients
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
enum class Work { kCopyIn, kKernel, kCopyBack, kEvict, kReturn };

// A period in which an engine works on one thing without interruption.
struct Slice {
  Work work = Work::kKernel;
  ClientIndex client = 0;
  std::int32_t engine = 0;  // index of the compute engine; 0 for copies
  std::int32_t kernel = 0;  // index of the client's kernel
  Nanoseconds start = 0, end = 0;
  Bytes bytes = 0;  // bytes of a copy
};

struct Schedule {
  Nanoseconds makespan = 0;        // time when the last client has left
  std::vector<ClientIndex> order;  // clients in the order of admission
  // Busy time of copies, including evictions and returns.
  Nanoseconds copy_in_busy = 0, copy_back_busy = 0;
  std::vector<Nanoseconds> compute_busy;  // busy time of each compute engine
  Bytes swapped_bytes = 0;                // bytes that were evicted; returns do not count again
  Bytes peak_bytes = 0;
  std::vector<Slice> slices;         // slices by start; only with Detail::kAll
  std::vector<MemorySample> memory;  // samples by ascending time; only with Detail::kAll
};

// How much work is left at some time of a simulation; bounds are computed from it.
struct Progress {
  Nanoseconds now = 0;
  Nanoseconds compute = 0;    // remaining kernels of admitted clients, summed over engines
  Nanoseconds copy_back = 0;  // remaining copies of admitted clients to the host
  // Time of the kernels and copies back that admitted clients have not begun, of clients only that
  // need more than half of the memory (Workload::large()).
  Nanoseconds large_hold = 0;
};

// A simulation in which the caller chooses one client after the other. Copy it to try several
// choices.
class ClientSimulation {
 public:
  ClientSimulation(const Workload& workload, Prefetch prefetch, Detail detail);

  // Runs until the copy engine is free for a new client, and returns true. After the last client
  // was admitted, runs to the end and returns false.
  bool advance();
  // Requires that advance() returned true. Each client must be admitted once.
  void admit(ClientIndex client);

  Progress progress() const;
  Nanoseconds makespan() const { return schedule_.makespan; }
  Schedule finish() && { return std::move(schedule_); }  // requires that advance() returned false

 private:
  using Rank = std::int32_t;  // number of a client in the order of admission
  enum class State : std::uint8_t {
    kQueued,    // waits for its copy
    kArriving,  // first copy or return
    kReady,     // a kernel may start
    kRunning,
    kIdle,      // in a gap, all its bytes on the device
    kLeaving,   // an eviction is queued or under way
    kOut,       // evicted, at least partly
    kFinished,  // after the last kernel
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
    // The client's bytes on the device, and how many of them are being evicted.
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
  void record(const Slice& slice);

  const Workload* workload_;
  Prefetch prefetch_;
  Detail detail_;
  Nanoseconds now_ = 0;
  std::vector<Job> jobs_;  // admitted clients by rank
  Earliest<Event> events_;
  Earliest<Rank> ready_;
  Earliest<std::int32_t> free_engines_;
  Earliest<Departure> departures_;
  std::vector<Rank> idle_, out_;         // ranks of idle and of evicted clients, ascending
  std::vector<Nanoseconds> engine_end_;  // end of the last kernel of each compute engine
  // `waiting_` says whether the client admitted last still waits for its copy to the device.
  bool copy_in_free_ = true, copy_back_free_ = true, waiting_ = false;
  std::int32_t on_device_ = 0;
  Bytes free_ = 0, leaving_ = 0;  // leaving_: bytes of clients on their way to the host
  // Total times of the kernels and of the copies back that admitted clients have not begun.
  // large_left_: both times of the clients that need more than half of the memory.
  Nanoseconds compute_left_ = 0, copy_back_left_ = 0, large_left_ = 0;
  Nanoseconds copy_back_end_ = 0;
  Schedule schedule_;
};

// Simulates the clients, admitted in this order, which must contain each client once.
Schedule simulate(const Workload& workload, std::span<const ClientIndex> order, Prefetch prefetch,
                  Detail detail = Detail::kTimes);

}  // namespace convoy::partition::sharing

#include "partition/sharing/client_simulator.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>

namespace convoy::partition::sharing {
namespace {

// Returns the time to copy `bytes` of a client's data if all of its `whole` bytes take `time`.
// Rounds up.
Nanoseconds share_of(Nanoseconds time, Bytes bytes, Bytes whole) {
  if (bytes == whole) return time;
  return static_cast<Nanoseconds>(
      std::ceil(static_cast<double>(time) * (static_cast<double>(bytes) / static_cast<double>(whole))));
}

void insert_sorted(std::vector<std::int32_t>& ranks, std::int32_t rank) {
  ranks.insert(std::lower_bound(ranks.begin(), ranks.end(), rank), rank);
}
void erase_sorted(std::vector<std::int32_t>& ranks, std::int32_t rank) {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
  if (at != ranks.end() && *at == rank) ranks.erase(at);
}

}  // namespace

ClientSimulation::ClientSimulation(const Workload& workload, Prefetch prefetch, Detail detail)
    : workload_(&workload),
      prefetch_(prefetch),
      detail_(detail),
      engine_end_(workload.device().compute_engines, 0),
      free_(workload.device().memory) {
  jobs_.reserve(workload.count());
  for (std::int32_t engine = 0; engine < workload.device().compute_engines; ++engine)
    free_engines_.push(engine);
  schedule_.compute_busy.assign(engine_end_.size(), 0);
}

bool ClientSimulation::advance() {
  const std::size_t count = workload_->count();
  while (true) {
    start_work();
    if (copy_in_free_ && !waiting_ && jobs_.size() < count && !return_is_due()) return true;
    if (events_.empty()) break;
    now_ = events_.top().time;
    while (!events_.empty() && events_.top().time == now_) {
      const Event event = events_.top();
      events_.pop();
      process(event);
    }
  }
  if (on_device_ > 0 || waiting_) throw std::logic_error("sharing: clients wait for each other");
  return false;
}

void ClientSimulation::admit(ClientIndex client) {
  jobs_.push_back({.client = client});
  waiting_ = true;
  const Client& given = workload_->client(client);
  if (given.arrival > now_) happen(given.arrival, static_cast<Rank>(jobs_.size()) - 1, Happening::kNothing);
  compute_left_ += workload_->busy(client), copy_back_left_ += given.copy_back;
  if (workload_->large(client)) large_left_ += workload_->busy(client) + given.copy_back;
  schedule_.order.push_back(client);
}

RemainingWork ClientSimulation::remaining_work() const {
  RemainingWork left{now_, compute_left_, copy_back_left_ + std::max<Nanoseconds>(0, copy_back_end_ - now_),
                     large_left_};
  for (const Nanoseconds end : engine_end_) left.compute += std::max<Nanoseconds>(0, end - now_);
  return left;
}

Nanoseconds ClientSimulation::evict_time(Rank rank, Bytes bytes) const {
  return share_of(client_of(rank).copy_back, bytes, client_of(rank).bytes);
}
Nanoseconds ClientSimulation::return_time(Rank rank, Bytes bytes) const {
  return share_of(client_of(rank).copy_in, bytes, client_of(rank).bytes);
}
Nanoseconds ClientSimulation::latest_return(Rank rank) const {
  return jobs_[rank].ready - return_time(rank, client_of(rank).bytes - jobs_[rank].resident);
}
bool ClientSimulation::return_is_due() const {
  return std::any_of(out_.begin(), out_.end(), [&](Rank rank) { return latest_return(rank) <= now_; });
}

void ClientSimulation::process(const Event& event) {
  Job& job = jobs_[event.rank];
  switch (event.what) {
    case Happening::kArrived:
      return end_arrival(event.rank);
    case Happening::kKernelEnded:
      return end_kernel(event.rank);
    case Happening::kGapEnded:
      if (job.state != State::kIdle) return;  // the client is leaving, evicted or returning
      erase_sorted(idle_, event.rank);
      job.state = State::kReady;
      return ready_.push(event.rank);
    case Happening::kEvicted:
      copy_back_free_ = true;
      leaving_ -= job.leaving;
      return end_eviction(event.rank);
    case Happening::kCopiedBack:
      copy_back_free_ = true;
      leaving_ -= job.resident;
      return leave(event.rank);
    case Happening::kNothing:
      return;
  }
}

void ClientSimulation::end_arrival(Rank rank) {
  copy_in_free_ = true;
  Job& job = jobs_[rank];
  if (job.ready > now_) {
    job.state = State::kIdle;
    return insert_sorted(idle_, rank);
  }
  job.state = State::kReady;
  ready_.push(rank);
}

void ClientSimulation::end_kernel(Rank rank) {
  Job& job = jobs_[rank];
  const Client& client = client_of(rank);
  free_engines_.push(job.engine);
  if (++job.kernel == std::ssize(client.kernels)) {
    job.state = State::kFinished;
    if (client.copy_back == 0) return leave(rank);
    leaving_ += job.resident;
    return departures_.push({now_, rank});
  }
  job.ready = now_ + client.idle[job.kernel - 1];
  if (job.ready == now_) {
    job.state = State::kReady;
    return ready_.push(rank);
  }
  job.state = State::kIdle;
  insert_sorted(idle_, rank);
  happen(job.ready, rank, Happening::kGapEnded);
}

void ClientSimulation::end_eviction(Rank rank) {
  Job& job = jobs_[rank];
  job.resident -= job.leaving;
  use_memory(-std::exchange(job.leaving, 0));
  job.state = State::kOut;
  insert_sorted(out_, rank);
  if (const Nanoseconds due = latest_return(rank); due > now_) happen(due, rank, Happening::kNothing);
}

void ClientSimulation::leave(Rank rank) {
  use_memory(-std::exchange(jobs_[rank].resident, 0));
  --on_device_;
  schedule_.makespan = now_;
}

void ClientSimulation::start_work() {
  while (!ready_.empty() && !free_engines_.empty()) start_kernel();
  if (copy_in_free_) start_arrival();
  if (copy_back_free_ && !departures_.empty()) start_departure();
}

void ClientSimulation::start_kernel() {
  const Rank rank = ready_.top();
  const std::int32_t engine = free_engines_.top();
  ready_.pop(), free_engines_.pop();
  Job& job = jobs_[rank];
  const Nanoseconds time = client_of(rank).kernels[job.kernel];
  job.state = State::kRunning, job.engine = engine;
  engine_end_[engine] = now_ + time;
  compute_left_ -= time;
  if (workload_->large(job.client)) large_left_ -= time;
  schedule_.compute_busy[engine] += time;
  record({EngineTask::kKernel, job.client, engine, job.kernel, now_, now_ + time, 0});
  happen(now_ + time, rank, Happening::kKernelEnded);
}

void ClientSimulation::start_arrival() {
  for (const Rank rank : out_)
    if (latest_return(rank) <= now_) {
      if (make_room(client_of(rank).bytes - jobs_[rank].resident, rank)) start_copy(rank);
      return;
    }
  if (!waiting_) return;
  const Rank rank = static_cast<Rank>(jobs_.size()) - 1;
  if (client_of(rank).arrival > now_) return;
  if (prefetch_ == Prefetch::kOff && on_device_ >= workload_->device().compute_engines) return;
  if (!make_room(client_of(rank).bytes, rank)) return;
  waiting_ = false;
  ++on_device_;
  start_copy(rank);
}

void ClientSimulation::start_copy(Rank rank) {
  Job& job = jobs_[rank];
  const Client& client = client_of(rank);
  const Bytes bytes = client.bytes - job.resident;
  const bool first = job.state == State::kQueued;
  const Nanoseconds time = first ? client.copy_in : return_time(rank, bytes);
  erase_sorted(out_, rank);
  use_memory(bytes);
  job.resident = client.bytes;
  job.state = State::kArriving;
  copy_in_free_ = false;
  schedule_.copy_in_busy += time;
  record({first ? EngineTask::kCopyIn : EngineTask::kReturn, job.client, 0, 0, now_, now_ + time, bytes});
  happen(now_ + time, rank, Happening::kArrived);
}

void ClientSimulation::start_departure() {
  const Rank rank = departures_.top().rank;
  departures_.pop();
  const Job& job = jobs_[rank];
  const bool last = job.state == State::kFinished;
  const Bytes bytes = last ? job.resident : job.leaving;
  const Nanoseconds time = last ? client_of(rank).copy_back : evict_time(rank, bytes);
  copy_back_free_ = false;
  copy_back_end_ = now_ + time;
  copy_back_left_ -= time;
  if (last && workload_->large(job.client)) large_left_ -= time;
  schedule_.copy_back_busy += time;
  record({last ? EngineTask::kCopyBack : EngineTask::kEvict, job.client, 0, 0, now_, now_ + time, bytes});
  happen(now_ + time, rank, last ? Happening::kCopiedBack : Happening::kEvicted);
}

bool ClientSimulation::may_be_evicted(Rank rank, Bytes bytes, bool for_return) const {
  const Job& job = jobs_[rank];
  if (for_return && job.state == State::kOut && latest_return(rank) <= now_) return true;
  const Bytes missing = client_of(rank).bytes - job.resident + bytes;
  return job.ready - now_ >= evict_time(rank, bytes) + return_time(rank, missing);
}

bool ClientSimulation::make_room(Bytes need, Rank rank) {
  if (need <= free_) return true;
  Bytes lacking = need - free_ - leaving_;
  const EvictionPolicy eviction = workload_->device().eviction;
  if (lacking <= 0 || eviction == EvictionPolicy::kOff) return false;
  std::vector<Rank> candidates(out_);
  const auto longest_gap = [&](Rank a, Rank b) {
    return std::tuple(-jobs_[a].ready, a) < std::tuple(-jobs_[b].ready, b);
  };
  candidates.insert(candidates.end(), idle_.begin(), idle_.end());
  const auto first_idle = candidates.begin() + std::ssize(out_);
  std::sort(candidates.begin(), first_idle, longest_gap);
  std::sort(first_idle, candidates.end(), longest_gap);
  std::vector<std::pair<Rank, Bytes>> chosen;
  for (const Rank other : candidates) {
    const Bytes resident = jobs_[other].resident;
    const Bytes bytes = eviction == EvictionPolicy::kWhole ? resident : std::min(resident, lacking);
    if (other == rank || bytes == 0) continue;
    if (!may_be_evicted(other, bytes, jobs_[rank].state == State::kOut)) continue;
    chosen.emplace_back(other, bytes);
    if ((lacking -= bytes) <= 0) break;
  }
  if (lacking > 0) return false;
  for (const auto& [other, bytes] : chosen) evict(other, bytes);
  return need <= free_;
}

void ClientSimulation::evict(Rank rank, Bytes bytes) {
  Job& job = jobs_[rank];
  erase_sorted(job.state == State::kOut ? out_ : idle_, rank);
  schedule_.swapped_bytes += bytes;
  job.leaving = bytes;
  if (client_of(rank).copy_back == 0) return end_eviction(rank);
  job.state = State::kLeaving;
  leaving_ += bytes;
  copy_back_left_ += evict_time(rank, bytes);
  departures_.push({now_, rank});
}

void ClientSimulation::use_memory(Bytes bytes) {
  if (bytes == 0) return;
  free_ -= bytes;
  const Bytes used = workload_->device().memory - free_;
  schedule_.peak_bytes = std::max(schedule_.peak_bytes, used);
  if (detail_ != Detail::kAll) return;
  std::vector<MemorySample>& curve = schedule_.memory;
  if (curve.empty() || curve.back().time != now_) curve.push_back({now_, 0});
  curve.back().bytes = used;
}

void ClientSimulation::record(const EngineInterval& interval) {
  if (detail_ == Detail::kAll) schedule_.intervals.push_back(interval);
}

ClientSchedule simulate(const Workload& workload, std::span<const ClientIndex> order, Prefetch prefetch,
                        Detail detail) {
  ClientSimulation simulation(workload, prefetch, detail);
  auto next = order.begin();
  while (simulation.advance()) simulation.admit(*next++);
  return std::move(simulation).finish();
}

}  // namespace convoy::partition::sharing

#include "app/sharing/reserved_memory.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "kernels/device/device_memory.h"
#include "kernels/device/errors.h"

namespace convoy::app {
namespace {

std::int64_t free_memory(kernels::Backend backend) {
  if (backend == kernels::Backend::cuda) return kernels::free_gpu_memory() / 100 * 95;
  return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE) / 10 * 9;
}

}  // namespace

void ReservedMemory::add(const std::string& name, bool stays, bool starts_with_others) {
  Job& job = jobs_.emplace_back();
  job.map.name = name;
  job.map.stays = stays;
  job.starts_with_others = starts_with_others;
  find_conflicts();
}

void ReservedMemory::ask(int number, const MemoryNeed& need) {
  Job& job = at(number);
  if (job.map.placed) {
    // A training with --halving makes a second, smaller session, which gets the same memory.
    if (!std::ranges::equal(need.bytes, job.map.need.bytes, std::less_equal<>()))
      throw std::logic_error("a second session of a job needs more memory than the first");
  } else {
    job.map.need = need;
  }
  job.requested = true;
  place_waiting();
}

void ReservedMemory::end(int number) {
  Job& job = at(number);
  job.host_state = {};
  job.ended = true;
  job.map.placed = false, job.map.need = {};
  if (job.arena > 0) arenas_[job.arena] = {};
  find_conflicts();
  place_waiting();
}

// Places the memory of all jobs that have requested memory and have none. Does nothing before all
// jobs that start together have requested memory.
void ReservedMemory::place_waiting() {
  const auto missing = [](const Job& job) { return job.starts_with_others && !job.requested && !job.ended; };
  if (!placed_first_ && std::ranges::any_of(jobs_, missing)) return;
  std::vector<Job*> requested;
  for (Job& job : jobs_)
    if (job.requested && !job.ended && !job.map.placed && !job.failure) requested.push_back(&job);
  while (!requested.empty()) {
    try {
      if (!placed_first_) reserve_first(requested);
      place(requested);
      placed_first_ = true;
      break;
    } catch (const DoesNotFit& error) {
      // The other jobs may fit without this one.
      const auto job =
          std::ranges::find_if(requested, [&](const Job* one) { return one->map.name == error.job; });
      (*job)->failure = std::current_exception();
      requested.erase(job);
    } catch (const std::exception&) {
      for (Job* job : requested) job->failure = std::current_exception();
      requested.clear();
    }
  }
}

// Reserves the first arena. Its size is the memory limit. Without a limit, it is the memory that
// the jobs that start together need, but at most the free memory.
void ReservedMemory::reserve_first(const std::vector<Job*>& requested) {
  std::int64_t bytes = limit_;
  if (bytes == 0) {
    for (const Job* job : requested) bytes += bytes_side_by_side({&job->map, 1});
    bytes = std::min(bytes, free_memory(backend_));
  }
  arenas_.clear();
  arenas_.emplace_back(backend_, static_cast<std::size_t>(bytes));
}

void ReservedMemory::place(const std::vector<Job*>& requested) {
  const auto capacity = static_cast<std::int64_t>(arenas_[0].bytes());
  if (placed_first_ && limit_ == 0)
    for (Job* job : requested) place_alone(*job);
  std::vector<Job*> together;
  std::vector<MappedJob> maps;
  for (Job& job : jobs_)
    if (!job.ended && !job.failure && job.requested && (!job.map.placed || job.arena == 0)) {
      together.push_back(&job);
      maps.push_back(job.map);
    }
  place_jobs(capacity, maps);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    together[i]->map = maps[i];
    together[i]->base = arenas_[0].data();
  }
  find_conflicts();
  reserve_host_states();
}

// Gives a job an arena of its own, if the device has enough free memory. Used for jobs that ask for
// memory after the jobs that start together have been placed.
void ReservedMemory::place_alone(Job& job) {
  const std::int64_t bytes = bytes_side_by_side({&job.map, 1});
  if (job.map.placed || bytes > free_memory(backend_)) return;
  arenas_.emplace_back(backend_, static_cast<std::size_t>(bytes));
  place_jobs(bytes, {&job.map, 1});
  job.arena = arenas_.size() - 1;
  job.base = arenas_.back().data();
}

void ReservedMemory::reserve_host_states() {
  for (int job = 0; job < jobs(); ++job)
    for (int other = 0; other < jobs(); ++other)
      if (other != job && overwrites(other, job) && at(job).host_state.bytes() < state(job).size())
        at(job).host_state = kernels::Arena::for_copies(backend_, state(job).size());
}

void ReservedMemory::find_conflicts() {
  conflicts_.assign(jobs_.size(), std::vector<char>(jobs_.size(), 0));
  for (std::size_t a = 0; a < jobs_.size(); ++a)
    for (std::size_t b = 0; b < jobs_.size(); ++b)
      conflicts_[a][b] = a != b && jobs_[a].map.placed && jobs_[b].map.placed &&
                         jobs_[a].arena == jobs_[b].arena && share_memory(jobs_[a].map, jobs_[b].map);
}

std::span<std::byte> ReservedMemory::part(int number, MemoryPart part) const {
  const Job& job = at(number);
  const auto index = static_cast<std::size_t>(part);
  return {job.base + job.map.offset[index], static_cast<std::size_t>(job.map.need.bytes[index])};
}

bool ReservedMemory::overwrites(int other, int job) const {
  const Job &a = at(other), &b = at(job);
  return a.map.placed && b.map.placed && a.arena == b.arena && overwrites_state(a.map, b.map);
}

bool ReservedMemory::states_overlap(int a, int b) const {
  const std::span<std::byte> first = state(a), second = state(b);
  return overwrites(a, b) && first.data() < second.data() + second.size() &&
         second.data() < first.data() + first.size();
}

bool ReservedMemory::any_state_waits() const {
  for (int a = 0; a < jobs(); ++a)
    for (int b = 0; b < jobs(); ++b)
      if (a != b && overwrites(a, b)) return true;
  return false;
}

std::int64_t ReservedMemory::bytes() const {
  std::int64_t sum = 0;
  for (const kernels::Arena& arena : arenas_) sum += static_cast<std::int64_t>(arena.bytes());
  return sum;
}

}  // namespace convoy::app

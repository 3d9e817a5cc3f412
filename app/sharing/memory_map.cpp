#include "app/sharing/memory_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace convoy::app {
namespace {

constexpr int kInputs = static_cast<int>(MemoryPart::inputs), kState = static_cast<int>(MemoryPart::state),
              kScratch = static_cast<int>(MemoryPart::scratch);

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kMapAlignment - 1) / kMapAlignment * kMapAlignment;
}

struct Range {
  std::int64_t begin = 0, end = 0;
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};
Range range_of(const MappedJob& job, int part) {
  return {job.offset[part], job.offset[part] + aligned(job.need.bytes[part])};
}

// Finds offsets for the parts of jobs (MemoryPart), one part after the other. `placed_[job][part]`
// says whether a part has an offset.
class Placing {
 public:
  Placing(std::int64_t capacity, std::span<MappedJob> jobs)
      : capacity_(capacity / kMapAlignment * kMapAlignment), jobs_(jobs) {
    for (const MappedJob& job : jobs_) placed_.emplace_back(kMemoryParts, job.placed);
  }

  // Places the part in free memory, at the lowest possible offset. Returns false if no free range
  // is large enough.
  bool place_free(std::size_t job, int part) { return place(job, {part}, 0); }
  // Places the part where its cost_of() is lowest, in free memory or over other parts. Returns
  // false if it may not be placed anywhere.
  bool place_shared(std::size_t job, int part) { return place(job, {part}, kAnyCost); }
  // Places the job's scratch memory, which may overlap other parts. If the scratch memory or the
  // state has no place, places both again, one directly after the other. Throws DoesNotFit if that
  // is impossible.
  void place_both(std::size_t job) {
    if (placed_[job][kState] && place_shared(job, kScratch)) return;
    forget(job);
    if (!place(job, {kState, kScratch}, kAnyCost)) throw DoesNotFit(jobs_[job], capacity_);
  }
  // Places the states and the scratch memory of all these jobs in one range of memory, which is as
  // large as the largest job needs. Takes a free range if there is one. Otherwise the range
  // overlaps jobs that were placed before.
  void stack(const std::vector<std::size_t>& jobs) {
    const auto bytes = [&](std::size_t job) {
      return aligned(jobs_[job].need.bytes[kState]) + aligned(jobs_[job].need.bytes[kScratch]);
    };
    if (jobs.empty()) return;
    const std::size_t largest = *std::ranges::max_element(jobs, {}, bytes);
    if (!place(largest, {kState, kScratch}, 0) && !place(largest, {kState, kScratch}, kAnyCost))
      throw DoesNotFit(jobs_[largest], capacity_);
    for (const std::size_t job : jobs) {
      jobs_[job].offset[kState] = jobs_[largest].offset[kState];
      jobs_[job].offset[kScratch] = jobs_[job].offset[kState] + aligned(jobs_[job].need.bytes[kState]);
      placed_[job][kState] = placed_[job][kScratch] = true;
    }
  }
  void forget(std::size_t job) { placed_[job][kState] = placed_[job][kScratch] = false; }

 private:
  static constexpr std::int64_t kAnyCost = std::numeric_limits<std::int64_t>::max();

  // Places the parts directly one after the other at the offset where their cost_of() is lowest. Of
  // equal costs, shared scratch memory takes the highest offset, and other parts take the lowest.
  // Returns false if the cost exceeds `most_cost` everywhere.
  bool place(std::size_t job, const std::vector<int>& parts, std::int64_t most_cost) {
    std::int64_t bytes = 0;
    for (const int part : parts) bytes += aligned(jobs_[job].need.bytes[part]);
    std::vector<std::int64_t> candidates{0, capacity_ - bytes};
    for (std::size_t other = 0; other < jobs_.size(); ++other)
      for (int its = 0; its < kMemoryParts; ++its) {
        if (!placed_[other][its]) continue;
        candidates.push_back(range_of(jobs_[other], its).end);
        candidates.push_back(range_of(jobs_[other], its).begin - bytes);
      }
    std::ranges::sort(candidates);
    if (parts.front() == kScratch && most_cost > 0) std::ranges::reverse(candidates);
    std::optional<std::int64_t> best;
    std::int64_t best_cost = 0;
    for (const std::int64_t offset : candidates) {
      if (offset < 0 || offset + bytes > capacity_) continue;
      const std::optional<std::int64_t> cost = cost_at(job, parts, offset);
      if (!cost || *cost > most_cost || (best && *cost >= best_cost)) continue;
      best = offset, best_cost = *cost;
    }
    if (!best) return false;
    for (const int part : parts) {
      jobs_[job].offset[part] = *best;
      placed_[job][part] = true;
      *best += aligned(jobs_[job].need.bytes[part]);
    }
    return true;
  }

  std::optional<std::int64_t> cost_at(std::size_t job, const std::vector<int>& parts,
                                      std::int64_t offset) const {
    std::int64_t sum = 0;
    for (const int part : parts) {
      const std::int64_t end = offset + aligned(jobs_[job].need.bytes[part]);
      const std::optional<std::int64_t> cost = cost_of(job, part, {offset, end});
      if (!cost) return std::nullopt;
      sum += *cost;
      offset = end;
    }
    return sum;
  }

  // Returns the cost of placing the part in `range`, or nothing if that is not allowed. The cost is
  // mainly the bytes of states that must be copied to host memory and back because parts overlap.
  std::optional<std::int64_t> cost_of(std::size_t job, int part, Range range) const {
    std::int64_t cost = 0;
    for (std::size_t other = 0; other < jobs_.size(); ++other)
      for (int its = 0; its < kMemoryParts; ++its) {
        if (!placed_[other][its] || (other == job && its == part) ||
            !range.overlaps(range_of(jobs_[other], its)))
          continue;
        if (other == job || part == kInputs || its == kInputs || jobs_[job].stays != jobs_[other].stays)
          return std::nullopt;
        std::int64_t copied = 0;
        if (its == kState) copied += jobs_[other].need.bytes[kState];
        if (part == kState) copied += jobs_[job].need.bytes[kState];
        cost += 1 + copied * (its == kState && part == kState && follow_each_other(job, other) ? 4 : 1);
      }
    return cost;
  }

  bool follow_each_other(std::size_t a, std::size_t b) const {
    return (a + 1) % jobs_.size() == b || (b + 1) % jobs_.size() == a;
  }

  std::int64_t capacity_;
  std::span<MappedJob> jobs_;
  std::vector<std::vector<bool>> placed_;
};

}  // namespace

DoesNotFit::DoesNotFit(const MappedJob& map, std::int64_t capacity)
    : OutOfMemory(
          fmt::format("needs {} MiB of device memory, next to the inputs and services of other jobs in "
                      "{} MiB; a smaller batch or the key memory-limit needs less",
                      bytes_side_by_side({&map, 1}) >> 20, capacity >> 20),
          static_cast<std::size_t>(bytes_side_by_side({&map, 1}))),
      job(map.name) {}

std::int64_t bytes_side_by_side(std::span<const MappedJob> jobs) {
  std::int64_t sum = 0;
  for (const MappedJob& job : jobs)
    for (const std::int64_t bytes : job.need.bytes) sum += aligned(bytes);
  return sum;
}

bool share_memory(const MappedJob& a, const MappedJob& b) {
  for (int of_a = 0; of_a < kMemoryParts; ++of_a)
    for (int of_b = 0; of_b < kMemoryParts; ++of_b)
      if (range_of(a, of_a).overlaps(range_of(b, of_b))) return true;
  return false;
}

bool overwrites_state(const MappedJob& other, const MappedJob& job) {
  for (int part = 0; part < kMemoryParts; ++part)
    if (range_of(other, part).overlaps(range_of(job, kState))) return true;
  return false;
}

namespace {

void place_all(std::int64_t capacity, std::span<MappedJob> jobs, bool stay_apart) {
  Placing placing(capacity, jobs);
  std::vector<std::size_t> fresh;
  for (std::size_t job = 0; job < jobs.size(); ++job)
    if (!jobs[job].placed) fresh.push_back(job);
  for (const std::size_t job : fresh)
    if (!placing.place_shared(job, kInputs)) throw DoesNotFit(jobs[job], capacity);
  std::vector<std::size_t> staying;
  for (const std::size_t job : fresh)
    if (jobs[job].stays) staying.push_back(job);
  std::erase_if(fresh, [&](std::size_t job) { return jobs[job].stays; });
  // Place services (MappedJob::stays) before the other jobs.
  if (!stay_apart) placing.stack(staying);
  for (const std::size_t job : staying)
    if (stay_apart && !(placing.place_free(job, kState) && placing.place_free(job, kScratch)))
      throw DoesNotFit(jobs[job], capacity);
  bool free = true;
  for (const int part : {kState, kScratch})
    for (const std::size_t job : fresh) free = free && placing.place_free(job, part);
  if (!free) {
    for (const std::size_t job : fresh) placing.forget(job);
    for (const std::size_t job : fresh) placing.place_shared(job, kState);
    for (const std::size_t job : fresh) placing.place_both(job);
  }
  for (MappedJob& job : jobs) job.placed = true;
}

}  // namespace

void place_jobs(std::int64_t capacity, std::span<MappedJob> jobs) {
  const std::vector<MappedJob> before(jobs.begin(), jobs.end());
  try {
    place_all(capacity, jobs, true);
  } catch (const DoesNotFit&) {
    if (std::ranges::count_if(jobs, &MappedJob::stays) < 2) throw;
    std::ranges::copy(before, jobs.begin());
    place_all(capacity, jobs, false);
  }
}

}  // namespace convoy::app

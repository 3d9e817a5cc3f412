#include "app/sharing/state_copies.h"

#include <algorithm>
#include <utility>

#include "kernels/device/device_memory.h"

namespace convoy::app {

void StateCopies::add() {
  jobs_.emplace_back();
  for (Job& job : jobs_) job.followed.resize(jobs_.size());
}

void StateCopies::begin_session(int number) {
  wait_for(number);
  Job& job = at(number);
  job.fresh = true, job.resident = false;
  job.arriving.clear(), job.order.clear(), job.step.clear();
}

void StateCopies::wait_for(int number) {
  for (const Mark& mark : {at(number).last, arrived(number), at(number).out})
    unless_failed([&] { queue_.wait(mark); });
}

bool StateCopies::waits_in_host_memory(int number) const {
  return memory_.placed(number) && !at(number).resident && !at(number).fresh;
}

void StateCopies::evict(int number) {
  Job& job = at(number);
  if (!job.resident) return;
  const Mark after[] = {job.last, arrived(number)};
  job.resident = false;
  job.arriving.clear();
  if (!job.host_is_old) {
    // Other jobs must not write to the memory before the copies into it have ended.
    if (after[1]) job.out = after[1];
    return;
  }
  const std::span<std::byte> state = memory_.state(number);
  job.out = queue_.copy(DeviceQueue::Direction::to_host, memory_.host_state(number), state.data(),
                        state.size(), after);
  job.copied_bytes += static_cast<std::int64_t>(state.size());
  job.host_is_old = false;
}

void StateCopies::make_room(int number) {
  for (int other = 0; other < memory_.jobs(); ++other)
    if (other != number && memory_.overwrites(number, other)) evict(other);
}

void StateCopies::bring_state(int number) {
  Job& job = at(number);
  if (job.resident || !memory_.placed(number)) return;
  for (int other = 0; other < memory_.jobs(); ++other)
    if (other != number && memory_.states_overlap(number, other)) evict(other);
  std::vector<Mark> after = marks_of_conflicts(number);
  after.push_back(job.out);
  if (job.fresh) {
    for (const Mark& mark : after) queue_.wait(mark);
    clear(number);
    job.host_is_old = true;
  } else {
    copy_in(number, after);
  }
  job.fresh = false, job.resident = true;
}

void StateCopies::copy_in(int number, const std::vector<Mark>& after) {
  Job& job = at(number);
  const std::span<std::byte> state = memory_.state(number);
  const auto bytes = static_cast<std::int64_t>(state.size());
  // Copies of one direction run one after the other, so only the first one must wait for `after`.
  std::span<const Mark> waits = after;
  job.arriving.clear();
  for (CopyGroup& group : plan_copies({state.data(), bytes}, job.order, least_group_bytes_)) {
    Mark mark;
    for (const MemoryRange& range : group) {
      const std::ptrdiff_t offset = range.first() - state.data();
      mark = queue_.copy(DeviceQueue::Direction::to_device, state.data() + offset,
                         memory_.host_state(number) + offset, static_cast<std::size_t>(range.bytes), waits);
      waits = {};
    }
    job.arriving.push_back({std::move(group), std::move(mark)});
  }
  job.copied_bytes += bytes;
}

void StateCopies::clear(int number) {
  for (const MemoryPart part : {MemoryPart::inputs, MemoryPart::state}) {
    const std::span<std::byte> bytes = memory_.part(number, part);
    kernels::clear(backend_, bytes.data(), bytes.size(), {});
  }
  queue_.synchronize();
}

// Returns the marks (DeviceQueue::Mark) that must be reached before the job may write to its
// memory. Every other job that has memory in common with it has two such marks: the end of the
// other job's work, and the end of the copies of its state to host memory.
std::vector<DeviceQueue::Mark> StateCopies::marks_of_conflicts(int number) const {
  std::vector<Mark> marks;
  for (int other = 0; other < memory_.jobs(); ++other)
    if (memory_.conflict(number, other)) marks.push_back(at(other).last), marks.push_back(at(other).out);
  return marks;
}

std::vector<DeviceQueue::Mark> StateCopies::marks_before(
    int number, const std::function<bool(int other)>& takes_turns_with,
    const std::vector<MemoryRange>* first_used) {
  Job& job = at(number);
  std::vector<Mark> marks;
  for (int other = 0; other < memory_.jobs(); ++other) {
    const Job& its = at(other);
    const bool conflict = memory_.conflict(number, other);
    if (other == number || (!conflict && !takes_turns_with(other))) continue;
    Mark& followed = job.followed[static_cast<std::size_t>(other)];
    if (its.last == followed && !conflict) continue;
    followed = its.last;
    marks.push_back(its.last);
    if (conflict) marks.push_back(its.out);
  }
  // Parts arrive in order, so it is enough to wait for the last part that is used.
  const auto is_used = [&](const Arrival& part) {
    return first_used == nullptr || std::ranges::any_of(part.ranges, [&](const MemoryRange& range) {
             return std::ranges::any_of(*first_used,
                                        [&](const MemoryRange& use) { return use.overlaps(range); });
           });
  };
  const auto last = std::find_if(job.arriving.rbegin(), job.arriving.rend(), is_used);
  if (last != job.arriving.rend()) marks.push_back(last->mark);
  job.arriving.erase(job.arriving.begin(), last.base());
  return marks;
}

void StateCopies::launched(int number, kernels::Stream stream, const DeviceGate::Piece& piece) {
  Job& job = at(number);
  unless_failed([&] { job.flight.push_back(job.last = queue_.mark(stream)); });
  in_flight(number);
  if (piece.first_used == nullptr || memory_.host_state(number) == nullptr) return;
  job.step.insert(job.step.end(), piece.first_used->begin(), piece.first_used->end());
  if (piece.last) job.order = std::exchange(job.step, {});
}

std::size_t StateCopies::in_flight(int number) {
  std::deque<Mark>& flight = at(number).flight;
  unless_failed([&] {
    while (!flight.empty() && queue_.reached(flight.front())) flight.pop_front();
  });
  return flight.size();
}

}  // namespace convoy::app

#include "app/sharing/state_copies.h"

#include <utility>

#include "kernels/device/device_memory.h"

namespace convoy::app {

void StateCopies::add() {
  jobs_.emplace_back();
  for (Job& job : jobs_) job.followed.resize(jobs_.size());
}

void StateCopies::begin_session(int number) { at(number).fresh = true, at(number).resident = false; }

void StateCopies::wait_for(int number) {
  for (const Mark& mark : {at(number).last, at(number).in, at(number).out})
    unless_failed([&] { queue_.wait(mark); });
}

bool StateCopies::waits_in_host_memory(int number) const {
  return memory_.placed(number) && !at(number).resident && !at(number).fresh;
}

void StateCopies::evict(int number) {
  Job& job = at(number);
  if (!job.resident) return;
  const std::span<std::byte> state = memory_.state(number);
  const Mark after[] = {job.last, job.in};
  job.out = queue_.copy(DeviceQueue::Direction::to_host, memory_.host_state(number), state.data(),
                        state.size(), after);
  job.copied_bytes += static_cast<std::int64_t>(state.size());
  job.resident = false;
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
  } else {
    const std::span<std::byte> state = memory_.state(number);
    job.in = queue_.copy(DeviceQueue::Direction::to_device, state.data(), memory_.host_state(number),
                         state.size(), after);
    job.copied_bytes += static_cast<std::int64_t>(state.size());
  }
  job.fresh = false, job.resident = true;
}

void StateCopies::clear(int number) {
  for (const MemoryPart part : {MemoryPart::inputs, MemoryPart::state}) {
    const std::span<std::byte> bytes = memory_.part(number, part);
    kernels::clear(backend_, bytes.data(), bytes.size(), {});
  }
  queue_.synchronize();
}

// Returns the marks (DeviceQueue::Mark) that must be reached before the job may write to its
// memory: the end of the work, and of the copies to the host, of all jobs that have memory in
// common with it.
std::vector<DeviceQueue::Mark> StateCopies::marks_of_conflicts(int number) const {
  std::vector<Mark> marks;
  for (int other = 0; other < memory_.jobs(); ++other)
    if (memory_.conflict(number, other)) marks.push_back(at(other).last), marks.push_back(at(other).out);
  return marks;
}

std::vector<DeviceQueue::Mark> StateCopies::marks_before(
    int number, const std::function<bool(int other)>& takes_turns_with) {
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
  if (job.in) marks.push_back(std::exchange(job.in, nullptr));
  return marks;
}

void StateCopies::launched(int number, kernels::Stream stream) {
  unless_failed([&] { at(number).flight.push_back(at(number).last = queue_.mark(stream)); });
  in_flight(number);
}

std::size_t StateCopies::in_flight(int number) {
  std::deque<Mark>& flight = at(number).flight;
  unless_failed([&] {
    while (!flight.empty() && queue_.reached(flight.front())) flight.pop_front();
  });
  return flight.size();
}

}  // namespace convoy::app

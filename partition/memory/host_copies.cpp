#include "partition/memory/host_copies.h"

#include <algorithm>

namespace convoy::partition {
namespace {

// The plan allows each copy back this many times its estimated duration, because the estimate may
// be too short.
constexpr double kReserve = 1.15;
// A tensor always leaves the device for the longest time during which no run uses it. It leaves for
// another such time only if that time is at least kWorthwhile times as long as its copy back.
constexpr double kWorthwhile = 4;

}  // namespace

double expected_ms(const StepModel& model, const StepSchedule& schedule, const HostLink& link) {
  const std::size_t tensors = model.tensor_bytes.size();
  std::vector<double> out_end(tensors, 0), back_end(tensors, 0);
  // The times at which the operations, the copies to the host, and the copies back end so far.
  double now = 0, out = 0, back = 0;
  for (const StepRun& run : schedule) {
    if (run.computes()) {
      for (const int tensor : model.operations[run.operation].inputs) now = std::max(now, back_end[tensor]);
      now += model.operations[run.operation].ms;
      continue;
    }
    const int tensor = run.tensor();
    const std::int64_t bytes = model.tensor_bytes[tensor];
    if (run.kind == StepRun::Kind::copied_out) {
      now = std::max(now, out_end[tensor]);
    } else if (run.kind == StepRun::Kind::copy_out) {
      out_end[tensor] = out = std::max(now, out) + link.out_ms(bytes);
      now = link.overlaps ? now + link.slowing_ms(bytes) : out;
    } else {
      back_end[tensor] = back = std::max({now, back, out_end[tensor]}) + link.back_ms(bytes);
      now = link.overlaps ? now + link.slowing_ms(bytes) : back;
    }
  }
  return now;
}

std::int64_t host_bytes(const StepModel& model, const StepSchedule& schedule) {
  std::int64_t bytes = 0;
  for (const StepRun& run : schedule)
    if (run.kind == StepRun::Kind::copy_out)
      bytes += (model.tensor_bytes[run.tensor()] + model.alignment - 1) / model.alignment * model.alignment;
  return bytes;
}

HostCopies::HostCopies(const StepModel& model, const StepSchedule& schedule, const std::vector<int>& tensors,
                       const HostLink& link)
    : model_(model), schedule_(schedule), link_(link) {
  double ms = 0;
  for (const StepRun& run : schedule) end_.push_back(ms += model.operations[run.operation].ms);
  std::vector<int> number(model.tensor_bytes.size(), -1);  // index of each tensor in `tensors`
  for (int i = 0; i < std::ssize(tensors); ++i) number[tensors[i]] = i;
  std::vector<std::vector<int>> touched(tensors.size());  // the runs that write or read each tensor
  for (int at = 0; at < std::ssize(schedule); ++at)
    for (const auto* operands : {&schedule[at].outputs, &model.operations[schedule[at].operation].inputs})
      for (const int tensor : *operands)
        if (const int of = number[tensor]; of >= 0 && (touched[of].empty() || touched[of].back() != at))
          touched[of].push_back(at);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::vector<Absence> found = absences_of(tensors[i], touched[i]);
    absences_.insert(absences_.end(), found.begin(), found.end());
  }
  std::ranges::stable_sort(absences_, {}, &Absence::written);
}

std::vector<HostCopies::Absence> HostCopies::absences_of(int tensor, const std::vector<int>& touched) const {
  std::vector<Absence> all;
  for (std::size_t i = 0; i + 1 < touched.size(); ++i)
    if (touched[i] + 1 < touched[i + 1])
      all.push_back({tensor, touched[0], touched[i], touched[i + 1], false, touched[i], touched[i + 1]});
  const auto ms = [&](const Absence& of) { return end_[of.next - 1] - end_[of.last]; };
  const auto longest = std::ranges::max_element(all, {}, ms);
  if (longest == all.end()) return all;
  const int kept = longest->last;
  const double copy = link_.back_ms(model_.tensor_bytes[tensor]);
  std::erase_if(all, [&](const Absence& of) { return of.last != kept && ms(of) < kWorthwhile * copy; });
  all[0].leaves = true;
  return all;
}

std::int64_t HostCopies::bytes_of(const Absence& absence) const {
  return (model_.tensor_bytes[absence.tensor] + model_.alignment - 1) / model_.alignment * model_.alignment;
}

StepSchedule HostCopies::with(const std::vector<Absence>& absences) const {
  using Kind = StepRun::Kind;
  std::vector<StepSchedule> after(schedule_.size() + 1);  // copies to insert right before each run
  for (const Absence& of : absences)
    if (of.leaves) after[of.written + 1].push_back({0, {of.tensor}, Kind::copy_out});
  for (const Absence& of : absences)
    if (of.leaves) after[of.gone + 1].push_back({0, {of.tensor}, Kind::copied_out});
  std::vector<const Absence*> back;
  for (const Absence& of : absences) back.push_back(&of);
  std::ranges::stable_sort(back, {}, &Absence::next);
  for (const Absence* of : back) after[of->begin].push_back({0, {of->tensor}, Kind::copy_back});
  StepSchedule result;
  result.reserve(schedule_.size() + 3 * absences.size());
  for (std::size_t at = 0; at <= schedule_.size(); ++at) {
    result.insert(result.end(), after[at].begin(), after[at].end());
    if (at < schedule_.size()) result.push_back(schedule_[at]);
  }
  return result;
}

StepSchedule HostCopies::on_demand() const { return with(absences_); }

StepSchedule HostCopies::ahead_of(const std::vector<char>& operations, int ahead) const {
  std::vector<Absence> absences = absences_;
  for (Absence& of : absences)
    for (int passed = 0; of.begin > of.last + 1 && passed < ahead;)
      passed += operations[schedule_[--of.begin].operation] != 0 ? 1 : 0;
  return with(absences);
}

StepSchedule HostCopies::hidden(std::int64_t limit) const {
  HostCopies apart = *this;
  const StepSchedule sparse = on_demand();
  const std::vector<std::int64_t> all = live_bytes(model_, sparse);
  std::vector<std::int64_t> live;  // live bytes during each run of schedule_
  for (std::size_t at = 0; at < sparse.size(); ++at)
    if (sparse[at].computes()) live.push_back(all[at]);
  if (link_.overlaps) {
    apart.extend_out(live, limit);
    apart.extend_back(live, limit);
  }
  return with(apart.absences_);
}

// Moves the end of each copy to the host (Absence::gone) to a later run, until the link has had
// enough time for the copy. The tensor is then live longer. If this would raise the live bytes
// above the limit, the copy must end earlier, and all later operations wait for it.
void HostCopies::extend_out(std::vector<std::int64_t>& live, std::int64_t limit) {
  double out = 0, late = 0;
  for (Absence& of : absences_) {
    if (!of.leaves) continue;
    out = std::max(out, end_[of.written] + late) + link_.out_ms(model_.tensor_bytes[of.tensor]);
    const std::int64_t bytes = bytes_of(of);
    while (of.gone + 1 < of.next && end_[of.gone] + late < out && live[of.gone + 1] + bytes <= limit)
      live[++of.gone] += bytes;
    late += std::max(0.0, out - late - end_[of.gone]);
  }
}

void HostCopies::extend_back(std::vector<std::int64_t>& live, std::int64_t limit) {
  std::vector<Absence*> by_next;
  for (Absence& of : absences_) by_next.push_back(&of);
  std::ranges::stable_sort(by_next, {}, &Absence::next);
  double free = end_.back();  // the link is free until this time
  for (std::size_t i = by_next.size(); i-- > 0;) {
    Absence* const of = by_next[i];
    free = std::min(free, end_[of->next - 1]) - kReserve * link_.back_ms(model_.tensor_bytes[of->tensor]);
    const std::int64_t bytes = bytes_of(*of);
    while (of->begin > of->gone + 1 && end_[of->begin - 1] > free && live[of->begin - 1] + bytes <= limit)
      live[--of->begin] += bytes;
  }
  // The copies back must begin in the order in which the tensors are needed.
  int earliest = 0;
  for (Absence* of : by_next) earliest = of->begin = std::max(of->begin, earliest);
}

}  // namespace convoy::partition

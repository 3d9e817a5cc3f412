// Tensors of a training step that wait in host memory between forward and backward: when their
// copies begin and end, and how long the step then takes (Rhu et al., "vDNN: virtualized deep
// neural networks", MICRO 2016; Beaumont et al., "Efficient combination of rematerialization and
// offloading for training DNNs", NeurIPS 2021).
#pragma once

#include <cstdint>
#include <vector>

#include "partition/memory/step_model.h"

namespace convoy::partition {

// The way between a device and its host's memory. Copies in one direction run one after the other.
struct HostLink {
  double out_bytes_ms = 0, back_bytes_ms = 0;  // bytes that it copies in a millisecond
  std::int64_t host_bytes = 0;                 // space in host memory; 0: nothing may wait there
  bool overlaps = true;                        // copies run next to operations, and both ways at once
};

// Returns the milliseconds that a schedule takes: of its operations one after the other, and what
// they wait for copies.
double expected_ms(const StepModel& model, const StepSchedule& schedule, const HostLink& link);

// Returns the milliseconds of a copy of `bytes` bytes at `bytes_ms`.
double copy_ms(std::int64_t bytes, double bytes_ms);

// Returns the bytes of host memory that the schedule's copies take.
std::int64_t host_bytes(const StepModel& model, const StepSchedule& schedule);

// Inserts copies of tensors into a schedule that has none. A tensor leaves after its first run and
// comes back after the longest time without a reader, and after other long ones.
class HostCopies {
 public:
  // From the run that reads a tensor last to the next that reads it. Positions in the schedule.
  struct Absence {
    int tensor, written, last, next;
    bool leaves;              // else it is in host memory already
    int gone = 0, begin = 0;  // its buffer is free after run `gone`; it comes back from before run `begin`
  };

  // All arguments must outlive the object.
  HostCopies(const StepModel& model, const StepSchedule& schedule, const std::vector<int>& tensors,
             const HostLink& link);

  const std::vector<Absence>& absences() const { return absences_; }

  // A buffer is free right after its last reader, and the copy back begins right before the next.
  StepSchedule on_demand() const;
  // The same, but a copy back begins before the run in front of which `ahead` runs of these
  // operations come before its reader.
  StepSchedule ahead_of(const std::vector<char>& operations, int ahead) const;
  // Copies take as long as they would without waiting, as far as the live bytes stay within `limit`.
  StepSchedule hidden(std::int64_t limit) const;

 private:
  std::vector<Absence> absences_of(int tensor, const std::vector<int>& touched) const;
  void extend_out(std::vector<std::int64_t>& live, std::int64_t limit);
  void extend_back(std::vector<std::int64_t>& live, std::int64_t limit);
  StepSchedule with(const std::vector<Absence>& absences) const;
  std::int64_t bytes_of(const Absence& absence) const;

  const StepModel& model_;
  const StepSchedule& schedule_;
  const HostLink& link_;
  std::vector<double> end_;  // milliseconds after every run, without copies
  std::vector<Absence> absences_;  // by `last`
};

}  // namespace convoy::partition

// Plans copies of tensors that wait in host memory between forward and backward: when the copies
// begin and end, and how long the step then takes (Rhu et al., "vDNN: virtualized deep neural
// networks", MICRO 2016; Beaumont et al., "Efficient combination of rematerialization and
// offloading for training DNNs", NeurIPS 2021).
#pragma once

#include <cstdint>
#include <vector>

#include "partition/memory/step_model.h"

namespace convoy::partition {

// The link between a device and its host's memory. Copies in one direction run one after the other.
struct HostLink {
  double out_bytes_ms = 0, back_bytes_ms = 0;  // bytes per millisecond to the host, and back
  std::int64_t host_bytes = 0;                 // space in host memory; 0: no tensor may wait there
  // Whether operations and copies in both directions run at the same time. Else operations wait for
  // each copy.
  bool overlaps = true;
  // Time to start a copy, in addition to the time for its bytes.
  double start_ms = 0.01;

  double out_ms(std::int64_t bytes) const { return start_ms + static_cast<double>(bytes) / out_bytes_ms; }
  double back_ms(std::int64_t bytes) const { return start_ms + static_cast<double>(bytes) / back_bytes_ms; }
};

// Returns the milliseconds that a schedule takes. Operations run one after the other and wait for
// copies.
double expected_ms(const StepModel& model, const StepSchedule& schedule, const HostLink& link);

// Returns the bytes of host memory that the schedule's copies take.
std::int64_t host_bytes(const StepModel& model, const StepSchedule& schedule);

// Inserts copies of tensors into a schedule that has none. A tensor is copied to the host after the
// run that writes it. It is away from the device during its longest time without a reader, and
// during other such times that are long enough.
class HostCopies {
 public:
  // A time without a reader. `written`, `last` and `next` are positions in the schedule: the run
  // that writes the tensor, the last run that touches it before this time, and the next run that
  // reads it.
  struct Absence {
    int tensor, written, last, next;
    bool leaves;  // whether the tensor is copied out; otherwise its content is on the host already
    // The buffer is free after the run `gone`. The copy back begins before the run `begin`.
    int gone = 0, begin = 0;
  };

  // All arguments must outlive the object.
  HostCopies(const StepModel& model, const StepSchedule& schedule, const std::vector<int>& tensors,
             const HostLink& link);

  const std::vector<Absence>& absences() const { return absences_; }

  // Returns the schedule with copies on demand: frees a buffer right after the last reader before
  // each absence, and begins the copy back right before the next reader.
  StepSchedule on_demand() const;
  // Returns the same schedule, but with earlier copies back: `ahead` runs of the given operations
  // come between the begin of a copy and the reader. `operations` has one flag per operation.
  StepSchedule ahead_of(const std::vector<char>& operations, int ahead) const;
  // Returns a schedule in which copies begin and end so that no operation waits for them, as far as
  // the live bytes stay within `limit`.
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
  std::vector<double> end_;        // milliseconds after every run, without copies
  std::vector<Absence> absences_;  // sorted by `last`
};

}  // namespace convoy::partition

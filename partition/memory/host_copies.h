// Plans copies of tensors to host memory after forward writes them, and back to the device before
// backward reads them: when the copies begin and end, and how long the step then takes (Rhu et al.,
// "vDNN: virtualized deep neural networks", MICRO 2016; Beaumont et al., "Efficient combination of
// rematerialization and offloading for training DNNs", NeurIPS 2021).
#pragma once

#include <cstdint>
#include <vector>

#include "partition/memory/step_model.h"

namespace convoy::partition {

// The link between a device and the host's memory. Copies in one direction run one after another.
struct HostLink {
  double out_bytes_ms = 0, back_bytes_ms = 0;  // bytes per millisecond to the host, and back
  std::int64_t host_bytes = 0;                 // host memory for copies of tensors; 0: none
  // Whether operations and the copies in both directions run concurrently. If not, operations wait
  // for each copy.
  bool overlaps = true;
  // Time to start a copy, in addition to the time for its bytes.
  double start_ms = 0.01;
  // Copies slow down the operations beside them, because both use the device's memory: copying so
  // many bytes costs the operations one millisecond. 0: copies do not slow them down.
  double slowing_bytes_ms = 0;

  double out_ms(std::int64_t bytes) const { return start_ms + static_cast<double>(bytes) / out_bytes_ms; }
  double back_ms(std::int64_t bytes) const { return start_ms + static_cast<double>(bytes) / back_bytes_ms; }
  double slowing_ms(std::int64_t bytes) const {
    return slowing_bytes_ms > 0 ? static_cast<double>(bytes) / slowing_bytes_ms : 0;
  }
};

// Returns the expected duration of a schedule in milliseconds. Operations run one after another and
// wait for the copies of the tensors that they need.
double expected_ms(const StepModel& model, const StepSchedule& schedule, const HostLink& link);

// Returns how many bytes of host memory the copies of a schedule take.
std::int64_t host_bytes(const StepModel& model, const StepSchedule& schedule);

// Inserts copies of tensors into a schedule without copies. A tensor is copied to the host after
// the run that writes it. It leaves the device for the longest time during which no run uses it,
// and for other such times if they are long enough.
class HostCopies {
 public:
  // A time during which a tensor is not in device memory. `written`, `last` and `next` are
  // positions in the schedule: the run that writes the tensor, the last run that uses it before
  // this time, and the next run that reads it.
  struct Absence {
    int tensor, written, last, next;
    bool leaves;  // true: the tensor is copied to the host; false: an earlier absence did that
    // The device buffer is free after run `gone`. The copy back begins before run `begin`.
    int gone = 0, begin = 0;
  };

  // All arguments must live longer than this object.
  HostCopies(const StepModel& model, const StepSchedule& schedule, const std::vector<int>& tensors,
             const HostLink& link);

  const std::vector<Absence>& absences() const { return absences_; }

  // Returns the schedule with copies as late as possible: for each absence, frees the buffer right
  // after the run `last` and begins the copy back right before the run `next`.
  StepSchedule on_demand() const;
  // Returns the schedule of on_demand() with earlier copies back. Between the begin of a copy back
  // and the run that reads the tensor, there are `ahead` runs of the operations whose flag is set
  // in `operations`. There are fewer if the tensor leaves the device too late for that.
  StepSchedule ahead_of(const std::vector<char>& operations, int ahead) const;
  // Returns a schedule in which copies begin and end so that operations need not wait for them.
  // An operation does wait if the live bytes would otherwise rise above `limit`.
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
  std::vector<double> end_;        // end of each run in milliseconds, without copies
  std::vector<Absence> absences_;  // sorted by `written`
};

}  // namespace convoy::partition

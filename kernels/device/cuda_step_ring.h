// A ring of slots in page-locked memory that passes values to a captured step and results back, so
// that a step needs no CUDA call but its launch. Two kernels of the step access the slots over the
// bus.
// The host fills slot `number % slots` and launches. The fetch kernel copies the slot to the
// addresses that the step's kernels read. The publish kernel copies the results to the slot, then
// marks step `number` as finished. Members have the same fields, and a slot holds those of all of
// them. CUDA builds only.
#pragma once

#include <vector>

#include "kernels/device/cuda_runtime.h"

namespace convoy::kernels {

class StepRing {
 public:
  struct Field {
    void* device = nullptr;  // of member 0
    std::size_t bytes = 0;   // a multiple of 8
  };
  static constexpr int kMostFields = 5;

  StepRing(int slots, std::vector<Field> fetched, std::vector<Field> published, Members members = {});

  // Enqueue the first and the last kernel of a step. All other work of the step must be between
  // them on the stream.
  void fetch(Stream stream) const;
  void publish(Stream stream) const;

  // The host calls these. Step `number` counts launches from 0. A slot may be filled again once the
  // step that used it before is finished.
  std::byte* input(std::int64_t number, int field, int member = 0) const;
  bool finished(std::int64_t number) const;
  const std::byte* output(std::int64_t number, int field,
                          int member = 0) const;  // valid once the step is finished
  int slots() const { return slots_; }

 private:
  std::byte* slot(std::int64_t number) const {
    return pinned_.data() + static_cast<std::size_t>(number % slots_) * slot_bytes_;
  }

  int slots_;
  Members members_;
  std::vector<Field> fetched_, published_;
  // Offsets in a slot of the fetched fields, followed by those of the published fields and of the
  // mark. A field of all members is contiguous.
  std::vector<std::size_t> fetched_at_, published_at_;
  std::size_t mark_at_ = 0, slot_bytes_ = 0;
  PinnedBuffer pinned_;
  DeviceBuffer number_;  // the step's number, which the device counts
};

}  // namespace convoy::kernels

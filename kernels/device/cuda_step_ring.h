// What changes from step to step, handed to a captured step and back without a call to the runtime beside its launch: a
// ring of slots in page-locked memory, which two kernels of the step read and write over the bus. The host fills slot
// `number % slots` and launches; the fetch kernel copies the slot to where the step's kernels read it; the publish kernel
// copies the results to the slot and then says that step `number` is finished. CUDA builds only.
#pragma once

#include <vector>

#include "kernels/device/cuda_runtime.h"

namespace convoy::kernels {

class StepRing {
 public:
  struct Field {
    void* device = nullptr;
    std::size_t bytes = 0;  // a multiple of 8
  };
  static constexpr int kMostFields = 5;

  StepRing(int slots, std::vector<Field> fetched, std::vector<Field> published);

  // Enqueue the two kernels, first and last of a step: all of it must lie between them on the stream.
  void fetch(Stream stream) const;
  void publish(Stream stream) const;

  // Host. Step `number` counts launches from 0; a slot may be filled again when the step before in it is finished.
  std::byte* input(std::int64_t number, int field) const;
  bool finished(std::int64_t number) const;
  const std::byte* output(std::int64_t number, int field) const;  // once finished
  int slots() const { return slots_; }

 private:
  std::byte* slot(std::int64_t number) const {
    return pinned_.data() + static_cast<std::size_t>(number % slots_) * slot_bytes_;
  }

  int slots_;
  std::vector<Field> fetched_, published_;
  // In a slot: of the fetched fields, behind them of the published ones, behind them of the mark.
  std::vector<std::size_t> fetched_at_, published_at_;
  std::size_t mark_at_ = 0, slot_bytes_ = 0;
  PinnedBuffer pinned_;
  DeviceBuffer number_;  // the step's number, as the device counts it
};

}  // namespace convoy::kernels

// A ring of slots in page-locked host memory. It passes values from the host to a captured step,
// and results back, so that a step needs no CUDA call except its launch. Two kernels of the step
// access the slots over the bus.
//
// The host fills slot `number % slots` and launches the step. The fetch kernel copies the slot to
// the addresses from which the step's kernels read. The publish kernel copies the results to the
// slot, then marks step `number` as finished. All members (MemberLayout, kernel.h) have the same
// fields, and a slot holds the fields of all members. CUDA builds only.
#pragma once

#include <vector>

#include "kernels/device/cuda_runtime.h"

namespace convoy::kernels {

class StepRing {
 public:
  struct Field {
    void* device = nullptr;  // the address of member 0's field
    std::size_t bytes = 0;   // the bytes of one member's field, a multiple of 8
  };
  static constexpr int kMostFields = 5;

  StepRing(int slots, std::vector<Field> fetched, std::vector<Field> published, MemberLayout members = {});

  // Enqueue the first and the last kernel of a step. All other work of the step must lie between
  // them on the stream.
  void fetch(Stream stream) const;
  void publish(Stream stream) const;

  // The host calls the functions below. Step `number` counts launches from 0. A slot may be filled
  // again when the previous step that used it has finished.
  std::byte* input(std::int64_t number, int field, int member = 0) const;
  bool finished(std::int64_t number) const;
  const std::byte* output(std::int64_t number, int field,
                          int member = 0) const;  // valid once the step has finished
  int slots() const { return slots_; }

 private:
  std::byte* slot(std::int64_t number) const {
    return pinned_.data() + static_cast<std::size_t>(number % slots_) * slot_bytes_;
  }

  int slots_;
  MemberLayout members_;
  std::vector<Field> fetched_, published_;
  // For each field, its offset in a slot. A field has the values of all members, one after the
  // other. After the fields, at mark_at_, a slot has a mark that says which step has finished.
  std::vector<std::size_t> fetched_at_, published_at_;
  std::size_t mark_at_ = 0, slot_bytes_ = 0;
  PinnedBuffer pinned_;
  DeviceBuffer number_;  // the number of the current step, which the kernels count up
};

}  // namespace convoy::kernels

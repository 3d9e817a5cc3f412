// The batches that a loader hands out, step by step.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "data/image_set.h"
#include "kernels/device/mix_parameters.h"
#include "kernels/device/sample_transform.h"

namespace convoy::data {

// A place in training: batch `step` of epoch `epoch`, both from 0.
struct Position {
  std::int64_t epoch = 0, step = 0;
  bool operator==(const Position&) const = default;
};

// One rank's part of a global batch. All arrays have `capacity` entries, the same at every step;
// the first `valid` are real, the rest are zero images, or transforms without a meaning, with label
// -1 and sample -1. valid may be 0. An image that LoaderOptions::skip took is like the rest.
struct Batch {
  Position position;
  std::int32_t capacity = 0;      // ceil(global batch / ranks)
  std::int32_t valid = 0;         // real samples of this rank
  std::int32_t global_valid = 0;  // real samples of all ranks; > 0
  std::int64_t first = 0;         // where in the global batch this rank's first sample stands
  kernels::MixParameters mix;     // of this step, the same on every rank
  ImageShape shape;               // of the images that the network sees
  const std::int32_t* labels = nullptr;
  const std::int64_t* samples = nullptr;  // index of each sample in the image set
  // The rest as LoaderOptions::output says, null otherwise.
  const float* images = nullptr;                         // ready for the network, [capacity, C, H, W]
  const kernels::SampleTransform* transforms = nullptr;  // of each sample, to be applied on the device
  const std::uint8_t* cuts = nullptr;                    // the pixels that the transforms read
  std::int64_t cut_bytes = 0;                            // used by this batch
};

// Borrows a batch; its buffers are filled anew after the lease has gone. It must not outlive its
// source.
class BatchLease {
 public:
  class Owner {
   public:
    virtual void give_back(int slot) noexcept = 0;

   protected:
    ~Owner() = default;
  };

  BatchLease(const Batch& batch, Owner& owner, int slot) : batch_(&batch), owner_(&owner), slot_(slot) {}
  BatchLease(BatchLease&& other) noexcept
      : batch_(other.batch_), owner_(std::exchange(other.owner_, nullptr)), slot_(other.slot_) {}
  BatchLease& operator=(BatchLease&& other) noexcept {
    if (this != &other) {
      reset();
      batch_ = other.batch_;
      owner_ = std::exchange(other.owner_, nullptr);
      slot_ = other.slot_;
    }
    return *this;
  }
  ~BatchLease() { reset(); }
  void reset() noexcept {
    if (owner_ != nullptr) std::exchange(owner_, nullptr)->give_back(slot_);
  }
  const Batch& operator*() const { return *batch_; }
  const Batch* operator->() const { return batch_; }

 private:
  const Batch* batch_;
  Owner* owner_;
  int slot_;
};

// Gives the training loop its batches, however they reach this rank.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The next batch in order, epoch after epoch without end; blocks until it is ready. Rethrows what
  // failed in the background. The ring is in order: a lease must be given back before the
  // `buffers`-th call after the one that it came from (ScatterLoader, which runs one batch ahead:
  // one call earlier), else the call throws std::logic_error.
  virtual BatchLease next() = 0;
  virtual std::int64_t steps_per_epoch() const = 0;
  // Milliseconds that next() has waited since the source was made.
  virtual double wait_ms() const = 0;
};

}  // namespace convoy::data

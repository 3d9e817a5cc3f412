// The batches that the training loop gets from a loader, one per step.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "data/image_set.h"
#include "kernels/device/mix_parameters.h"
#include "kernels/device/sample_transform.h"

namespace convoy::data {

// A point in training: batch `step` of epoch `epoch`, both counted from 0.
struct BatchPosition {
  std::int64_t epoch = 0, step = 0;
  bool operator==(const BatchPosition&) const = default;
};

// The samples of one rank from a global batch. All arrays have `capacity` entries at every step,
// but only the first `valid` ones hold samples, and the others are empty; `valid` may be 0. With
// LoaderOptions::skip, the entry of an unreadable image is empty, too, although `valid` counts it.
// In an empty entry the label and the sample are -1, and the image is zero or the transform has no
// meaning.
struct Batch {
  BatchPosition position;
  std::int32_t capacity = 0;      // the most samples that any rank gets
  std::int32_t valid = 0;         // samples of this rank, including unreadable ones
  std::int32_t global_valid = 0;  // samples of all ranks, including unreadable ones; > 0
  std::int64_t first = 0;         // position of this rank's first sample in the global batch
  kernels::MixParameters mix;     // how this step mixes samples (mixup, cutmix); equal on all ranks
  ImageShape shape;               // shape of the network's input images
  const std::int32_t* labels = nullptr;
  const std::int64_t* samples = nullptr;  // index of each sample in the image set
  // LoaderOptions::output tells which of the following members are set. The others are null.
  const float* images = nullptr;  // ready for the network, [capacity, C, H, W]
  // One transform per sample. The device applies them.
  const kernels::SampleTransform* transforms = nullptr;
  const std::uint8_t* cuts = nullptr;  // the source pixels of all transforms, one sample after the other
  std::int64_t cut_bytes = 0;          // bytes of `cuts` that this batch uses
};

// Lends a batch until the lease ends. Afterwards the buffers of the batch are filled with other
// samples. A lease must not outlive its BatchSource.
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

// Supplies the training loop with batches. The implementations differ in how a rank gets the
// images.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Returns the next batch and blocks until it is ready. After the last batch of an epoch comes the
  // first one of the next. If a background thread has failed, throws the exception of that thread.
  //
  // The batches use LoaderOptions::buffers buffers one after the other, then the first one again.
  // The lease of a batch must end before the call of next() that is `buffers` calls later, or for
  // ScatterLoader `buffers` - 1 calls later. That call needs the buffer of the batch again, and
  // throws std::logic_error if the lease has not ended.
  virtual BatchLease next() = 0;
  virtual std::int64_t steps_per_epoch() const = 0;
  // Returns how many milliseconds all calls of next() have waited.
  virtual double wait_ms() const = 0;
};

}  // namespace convoy::data

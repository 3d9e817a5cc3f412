// The batches that a loader hands out, step by step.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "data/image_set.h"
#include "kernels/device/mix_parameters.h"
#include "kernels/device/sample_transform.h"

namespace convoy::data {

// A place in training: batch `step` of epoch `epoch`, both counted from 0.
struct Position {
  std::int64_t epoch = 0, step = 0;
  bool operator==(const Position&) const = default;
};

// One rank's part of a global batch. All arrays have `capacity` entries, the same at every step.
// Only the first `valid` entries hold samples; `valid` may be 0. Other entries are empty: label -1,
// sample -1, and a zero image or a meaningless transform. With LoaderOptions::skip, an entry whose
// image cannot be read is empty, too.
struct Batch {
  Position position;
  std::int32_t capacity = 0;      // ceil(global batch / ranks)
  std::int32_t valid = 0;         // real samples of this rank
  std::int32_t global_valid = 0;  // real samples of all ranks; > 0
  std::int64_t first = 0;         // position of this rank's first sample in the global batch
  kernels::MixParameters mix;     // how this step mixes its samples; the same on every rank
  ImageShape shape;               // shape of the images that the network gets
  const std::int32_t* labels = nullptr;
  const std::int64_t* samples = nullptr;  // index of each sample in the image set
  // LoaderOptions::output says which of the members below are set. The others are null.
  const float* images = nullptr;  // ready for the network, [capacity, C, H, W]
  // One transform per sample, which the device applies.
  const kernels::SampleTransform* transforms = nullptr;
  const std::uint8_t* cuts = nullptr;  // the pixels of all samples that the transforms read
  std::int64_t cut_bytes = 0;          // bytes of `cuts` that this batch uses
};

// Lends a batch until the lease ends. After that, other samples fill the batch's buffers. A lease
// must not outlive its BatchSource.
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

// Gives the training loop its batches. Implementations differ in how images reach the rank.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Returns the next batch, epoch after epoch without end, and blocks until it is ready. Throws the
  // exception with which the work in the background failed.
  // LoaderOptions::buffers batches share the memory in turn. So a lease must have ended before the
  // call of next() that uses its buffer again, `buffers` calls later (with ScatterLoader one call
  // earlier). Otherwise that call throws std::logic_error.
  virtual BatchLease next() = 0;
  virtual std::int64_t steps_per_epoch() const = 0;
  // Returns the milliseconds that next() has waited since the source was made.
  virtual double wait_ms() const = 0;
};

}  // namespace convoy::data

// Reads, shuffles and augments batches in background threads, ahead of the training loop. The
// samples of every global batch, their order and what augmentation does to them follow from the
// seed alone: not from the number of ranks, threads or buffers, and not from where a run was
// resumed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <string>
#include <vector>

#include "data/loader/augmentation.h"
#include "data/loader/batch.h"
#include "data/loader/mix.h"

namespace convoy::data {

enum class Order : std::uint8_t { shuffled, sequential };
enum class BatchOutput : std::uint8_t {
  images,      // float32 [C, H, W]: threads of the host resample, change and normalise
  cuts,        // decoded pixels of the parts that are needed, with the transforms that a device applies
  transforms,  // no pixels: the device holds a set of pixels of one shape, to which the transforms' offsets
               // refer
  labels,      // neither: for a stage of a partitioned step that reads no images
};

struct LoaderOptions {
  std::int64_t global_batch = 0;
  int rank = 0, ranks = 1;
  std::uint64_t seed = 0;
  Order order = Order::shuffled;  // sequential: stored order, for evaluation
  Augmentation augmentation;
  MixSettings mix;  // drawn here, applied by the step
  BatchOutput output = BatchOutput::images;
  std::vector<float> mean, std;  // one a channel, for BatchOutput::images
  Position start;                // of the first batch
  int threads = 1;
  int buffers = 3;  // batches in the ring, those that are out included; at least 2
  std::pmr::memory_resource* memory = nullptr;  // of the batch buffers (pinned, say); nullptr: the heap
  // Takes the message about an image of epoch 0 that cannot be read or decoded, on the loader's
  // threads. Its entry then is no sample, in later epochs too. If this is empty, next() throws the
  // message.
  std::function<void(const std::string& message)> skip = nullptr;
};

// Returns how many bytes the cuts of a batch of `capacity` samples take at most: the stored images,
// or 2.5 times the output's pixels if that is less. If there is no room left, the host resamples a
// sample, with the same bits.
std::int64_t cut_capacity(ImageShape stored, ImageShape output, std::int64_t capacity);

// Every rank reads its own slice.
class Loader final : public BatchSource {
 public:
  // Throws std::runtime_error where options and data do not go together (batch smaller than the
  // ranks, …).
  Loader(std::shared_ptr<const ImageSet> set, const LoaderOptions& options);
  ~Loader() override;

  BatchLease next() override;
  std::int64_t steps_per_epoch() const override;
  double wait_ms() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy::data

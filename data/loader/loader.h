// Reads, shuffles and augments batches in background threads, ahead of the training loop. The
// samples of every global batch, their order and their augmentation depend on the seed, not on the
// number of ranks, threads or buffers. A resumed run gets the same batches as an uninterrupted one.
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
  images,      // float32 [C, H, W], completely processed by threads of the host
  cuts,        // 8-bit pixels of the needed rectangles, and the transforms that the device applies
  transforms,  // transforms without pixels, for a device that holds all images in its memory
  labels,      // labels alone, for a stage of a partitioned step that reads no images
};

struct LoaderOptions {
  std::int64_t global_batch = 0;
  int rank = 0, ranks = 1;
  std::uint64_t seed = 0;
  Order order = Order::shuffled;  // sequential: stored order, for evaluation
  Augmentation augmentation;
  MixSettings mix;  // the loader chooses how to mix samples (mixup, cutmix); the training step mixes
  // A rank gets whole groups of this many samples. Mixing needs groups of kMixedTogether, so that
  // both samples of a pair are on one rank.
  int group = 1;
  // The number of consecutive batches that are parts of one step and are mixed in the same way.
  std::int64_t parts_of_step = 1;
  BatchOutput output = BatchOutput::images;
  std::vector<float> mean, std;  // one value per channel, for BatchOutput::images
  BatchPosition start;           // position of the first batch
  int threads = 1;
  int buffers = 3;  // number of batches in memory, including those that next() has lent; at least 2
  // Allocates the batch buffers, for example in page-locked memory. If null, they are on the heap.
  std::pmr::memory_resource* memory = nullptr;
  // Receives the error message for an image that cannot be read or decoded. It is called in epoch 0
  // only, on a thread of the loader. The image's entry in the batch is empty in all epochs. If
  // `skip` is null, next() throws the error.
  std::function<void(const std::string& message)> skip = nullptr;
};

// Returns the number of bytes for the source pixels (cuts) of a batch of `capacity` samples. This
// is the size of the stored images, or 2.5 times the size of the outputs if that is less. The host
// resamples the samples whose source pixels do not fit, with identical results.
std::int64_t cut_capacity(ImageShape stored, ImageShape output, std::int64_t capacity);

// A BatchSource in which every rank reads its own samples of each global batch.
class Loader final : public BatchSource {
 public:
  // Throws std::runtime_error if the options do not fit the set, for example if the global batch is
  // smaller than the number of ranks.
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

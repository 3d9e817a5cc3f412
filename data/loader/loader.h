// Reads, shuffles and augments batches in background threads, ahead of the training loop. The
// samples of every global batch, their order and their augmentation follow from the seed alone.
// They do not depend on the number of ranks, threads or buffers, nor on where a run was resumed.
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
  images,      // float32 [C, H, W]: threads of the host resample, augment and normalise
  cuts,        // decoded pixels of the parts that are needed, with the transforms that a device applies
  transforms,  // no pixels: the offsets of the transforms refer to pixels that the device holds
  labels,      // labels alone, for a stage of a partitioned step that reads no images
};

struct LoaderOptions {
  std::int64_t global_batch = 0;
  int rank = 0, ranks = 1;
  std::uint64_t seed = 0;
  Order order = Order::shuffled;  // sequential: stored order, for evaluation
  Augmentation augmentation;
  MixSettings mix;  // the loader draws how to mix, the training step mixes
  BatchOutput output = BatchOutput::images;
  std::vector<float> mean, std;  // one value per channel, for BatchOutput::images
  Position start;                // position of the first batch
  int threads = 1;
  int buffers = 3;  // batches in the ring, including those that next() has lent; at least 2
  // The memory for the batch buffers, for example pinned memory. If null, the heap.
  std::pmr::memory_resource* memory = nullptr;
  // Receives the message about an image that cannot be read or decoded, in epoch 0 only, on a
  // thread of the loader. The entry of the image stays empty in all epochs. If `skip` is empty,
  // next() throws the message.
  std::function<void(const std::string& message)> skip = nullptr;
};

// Returns how many bytes a batch of `capacity` samples has for its cuts: as many as the stored
// images have, or 2.5 times the output's pixels if that is less. If no room is left for the cut of
// a sample, the host resamples the sample, with the same bits.
std::int64_t cut_capacity(ImageShape stored, ImageShape output, std::int64_t capacity);

// A BatchSource with which every rank reads its own slice of each global batch.
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

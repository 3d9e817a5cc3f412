// The choices that a rank's training and evaluation steps are compiled, and then run, with. They are the same on all
// ranks of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/graph/passes/precision.h"
#include "comm/collectives.h"
#include "data/image_set.h"
#include "kernels/device/kernel.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

// Batches in the ring of a GPU: one in use, the next one, and one being filled.
inline constexpr int kRingSlots = 3;

// The best of 2, 3, 4 and 6 for most of the zoo on an H200 (docs/results/training.md).
inline constexpr int kDefaultLanes = 3;

// The source of a CUDA session's images. Host sessions take float images, row_major, and nothing
// else.
struct InputOptions {
  enum class Kind : std::uint8_t {
    filled,    // the caller writes images()
    streamed,  // each batch brings the stored pixels that it needs (data::BatchOutput::cuts)
    resident  // put_image() has put all stored images there; batches say which (data::BatchOutput::transforms)
  };
  Kind kind = Kind::filled;
  std::vector<float> mean, std;  // one a channel, on the scale 0..1
  std::int64_t batch_bytes = 0;  // streamed: room for the pixels of one batch
  data::ImageShape stored;       // resident: of every image; streamed: its channels alone count
  std::int64_t resident_images = 0;
  int most_image_ops = 0;  // that the transform of a training sample may hold
};

struct StepOptions {
  kernels::Backend backend = kernels::Backend::cpu;
  Precision precision = Precision::fp32;
  InputOptions input;
  bool training = true;  // false: no gradients, no optimizer; evaluation only
  bool synchronised_batch_norm = true;
  float label_smoothing = 0;
  bool mixing = false;                  // training mixes samples as the MixParameters in memory say
  kernels::OptimizerProblem optimizer;  // its segments are filled in when the steps are compiled
  bool accumulate = false;              // a step's batch may come in parts; not in a partitioned step
  double clip_gradient_norm = 0;        // largest Euclidean norm of all gradients together; 0: off
  // CUDA: choices of kernels (kernels/device/tuning.h); empty: none. One rank measures what the file does not hold;
  // several take what it holds, so that all run the same kernels.
  std::string tuning_file = {};
  std::int64_t memory_limit = 0;  // bytes of the arena; 0: none
  std::uint64_t seed = 1;
  // CUDA: instructions that may run side by side; the bits are the same for any number.
  int lanes = kDefaultLanes;
  bool time_waits = true;  // CUDA: measure exposed_comm_ms
};

// The ranks of a run: replica after replica, each of as many ranks as its step has stages.
struct RankGroups {
  comm::Collectives* world = nullptr;     // all of them
  comm::Collectives* replicas = nullptr;  // those with this rank's stage: batches, gradients, statistics
  comm::Collectives* stages = nullptr;    // those of this rank's replica, by stage; null without partition
};

}  // namespace convoy::app

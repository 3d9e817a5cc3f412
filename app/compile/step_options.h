// The choices with which a rank's training and evaluation steps are compiled and run. They are the
// same on all ranks of a run.
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

// Batches in a GPU's ring: one in use, the next one, and one being filled.
inline constexpr int kRingSlots = 3;

// Three lanes are the fastest of 2, 3, 4 and 6 for most of the zoo on an H200
// (docs/results/training.md).
inline constexpr int kDefaultLanes = 3;

// The source of a CUDA session's images. Host sessions accept only `filled`: float images,
// row-major.
struct InputOptions {
  enum class Kind : std::uint8_t {
    filled,    // the caller writes images()
    streamed,  // each batch brings its stored pixels (data::BatchOutput::cuts)
    resident   // put_image() stored all images; batches select (data::BatchOutput::transforms)
  };
  Kind kind = Kind::filled;
  std::vector<float> mean, std;  // one value a channel, for pixels from 0 to 1
  std::int64_t batch_bytes = 0;  // streamed: space for the pixels of one batch
  int batches = 1;               // streamed: different batches of a step, one for members that share it
  data::ImageShape stored;       // the shape of all images; streamed: only the channels count
  std::int64_t resident_images = 0;
  int most_image_ops = 0;  // the most operations in one training sample's transform
};

// One of the trainings that run the steps of a session together. They differ in what is data of the
// step, and so each trains to the same bits as alone.
struct Member {
  std::uint64_t seed = 1;  // of the weights and of dropout
  kernels::Hyperparameters hyperparameters;
};

struct StepOptions {
  kernels::Backend backend = kernels::Backend::cpu;
  Precision precision = Precision::fp32;
  InputOptions input;
  bool training = true;             // false: no gradients, no optimizer; evaluation only
  bool keep_probabilities = false;  // every evaluation step hands out its probabilities; not with `training`
  bool synchronised_batch_norm = true;
  std::vector<float> loss_weights = {};  // of the network's outputs (graph/emitter.h)
  bool mixing = false;                   // training mixes samples by the MixParameters of each batch
  kernels::OptimizerProblem optimizer;   // its segments are filled in when the steps are compiled
  bool accumulate = false;               // a batch may come in parts; not with a partitioned step
  bool clip = false;                     // bounds the Euclidean norm of all gradients
  std::vector<Member> members = {Member{}};
  // CUDA: the file of measured kernel choices (kernels/device/tuning.h); empty: none. A single rank
  // measures the choices that the file lacks. Several ranks only read it, so that all run the same
  // kernels.
  std::string tuning_file = {};
  bool read_tuning_only = false;  // also on a single rank: others may use the file at the same time
  std::int64_t memory_limit = 0;  // bytes of the arena; 0: none
  std::int64_t host_memory = 0;   // most bytes of activations that wait in host memory; 0: none
  // CUDA: instructions that may run at the same time. The results have the same bits for any
  // number.
  int lanes = kDefaultLanes;
  bool time_waits = true;  // CUDA: measure exposed_comm_ms
};

// The ranks of a run, numbered replica after replica. A replica has one rank for each stage of its
// step.
struct RankGroups {
  comm::Collectives* world = nullptr;     // all ranks
  comm::Collectives* replicas = nullptr;  // ranks with this rank's stage: they sum gradients and statistics
  comm::Collectives* stages = nullptr;    // ranks of this rank's replica, by stage; null without --partition
};

}  // namespace convoy::app

// The choices that decide how a rank's training and evaluation steps are compiled and run. They are
// the same on all ranks of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/graph/passes/fusions.h"
#include "app/graph/passes/precision.h"
#include "app/graph/passes/weight_gradient_pieces.h"
#include "comm/collectives.h"
#include "data/image_set.h"
#include "kernels/device/kernel.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

class DeviceGate;

// The number of batches in a GPU's ring of inputs: the batch in use, the next batch, and a batch
// that is being copied.
inline constexpr int kRingSlots = 3;

// The default number of lanes, which are sequences of instructions that run at the same time
// (execute/lane_plan.h). Three lanes are the fastest of 2, 3, 4 and 6 for most of the built-in
// networks on an H200 (docs/results/training.md).
inline constexpr int kDefaultLanes = 3;
inline constexpr int kMostLanes = 8;
// With this value of StepOptions::lanes, app/concurrency chooses the lanes and the order of the
// instructions of a training step.
inline constexpr int kAutoLanes = 0;

// The source of a CUDA session's images. Host sessions accept only `filled`, with row-major float
// images.
struct InputOptions {
  enum class Kind : std::uint8_t {
    filled,  // the caller writes StepInput::images()
    // Each batch brings the stored pixels of its images (data::BatchOutput::cuts).
    streamed,
    // put_image() stores all images of the set on the device before the first batch. A batch only
    // tells which of them it uses (data::BatchOutput::transforms).
    resident
  };
  Kind kind = Kind::filled;
  // For each channel: mean and standard deviation of pixels from 0 to 1, to normalise images.
  std::vector<float> mean, std;
  std::int64_t batch_bytes = 0;  // streamed: bytes for the pixels of one batch
  // Streamed: the number of different batches in a step. If several members train on the same
  // batch, it counts once.
  int batches = 1;
  // The shape of all images. If they are streamed, only its number of channels is used.
  data::ImageShape stored;
  // Resident: the number of images; 0 if the session reads those of another one
  // (StepInput::read_images_of).
  std::int64_t resident_images = 0;
  // The most image operations that the transform of one training sample has.
  int most_image_ops = 0;
};

// One of the trainings whose steps a session runs together. Members differ only in values that the
// step reads from memory, so each member's training has the same bits as if it ran alone.
struct Member {
  std::uint64_t seed = 1;  // seed of the initial weights and of dropout
  kernels::Hyperparameters hyperparameters;
};

struct StepOptions {
  kernels::Backend backend = kernels::Backend::cpu;
  Precision precision = Precision::fp32;
  InputOptions input;
  // Whether the session trains. If not, it only evaluates and has no gradients and no optimizer.
  bool training = true;
  // Whether an evaluation step keeps its probabilities for the caller. Not allowed with `training`.
  bool keep_probabilities = false;
  bool synchronised_batch_norm = true;
  // One weight per output of the network (graph/emitter.h).
  std::vector<float> loss_weights = {};
  // Whether training mixes pairs of samples, as the MixParameters of each batch say.
  bool mixing = false;
  // The optimizer. Its segments, one per parameter, are set when the steps are compiled.
  kernels::OptimizerProblem optimizer;
  // Whether a batch may be computed in several parts, whose gradients are added up. Not allowed
  // with a partitioned step.
  bool accumulate = false;
  bool clip = false;  // limits the Euclidean norm of all gradients
  // CUDA, bf16: which batch norms the convolutions after them compute.
  NormInputRule norm_inputs = {};
  // Backward updates parameters of at least this many bytes, if it can (compile/early_updates.h).
  // This does not change the bits of the results. One kernel for all smaller parameters is faster
  // than a kernel for each.
  std::int64_t early_update_bytes = 1 << 20;
  std::vector<Member> members = {Member{}};
  // CUDA: the file of measured kernel choices (kernels/device/tuning.h); empty if there is none. A
  // single rank measures the choices that the file lacks. Several ranks only read the file, so that
  // all of them run the same kernels.
  std::string tuning_file = {};
  // If set, even a single rank only reads the tuning file, because other processes may use it at
  // the same time.
  bool read_tuning_only = false;
  std::int64_t memory_limit = 0;  // most bytes that a rank reserves; 0: no limit
  std::int64_t host_memory = 0;   // most bytes of activations in host memory
  // CUDA: the number of instructions that may run at the same time, 1 to kMostLanes, or kAutoLanes.
  // It does not change the bits of the results.
  int lanes = kDefaultLanes;
  // Whether parameters get all of their initial values. If not, they repeat the first ones, which
  // is enough to time steps and faster for large networks.
  bool initialise_all = true;
  bool time_waits = true;      // CUDA: whether to time the waits for other ranks (exposed_comm_ms)
  DeviceGate* gate = nullptr;  // not null if other sessions of this process use the device, too
  // Which convolutions sum the gradient of their weights over pieces of the batch
  // (passes/weight_gradient_pieces.h). Such convolutions can run over slices of the batch. The
  // pieces change the bits of these gradients.
  PieceOptions pieces = {};
};

// Three groups of ranks to which this rank belongs. A replica is a group of ranks that compute the
// stages of one step, one rank per stage. The ranks of a run are numbered replica after replica.
struct RankGroups {
  comm::Collectives* world = nullptr;  // all ranks of the run
  // The ranks of all replicas that have this rank's stage. They sum gradients and statistics.
  comm::Collectives* replicas = nullptr;
  // The ranks of this rank's replica, by stage; null without --partition.
  comm::Collectives* stages = nullptr;
};

}  // namespace convoy::app

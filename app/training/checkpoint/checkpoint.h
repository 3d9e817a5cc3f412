// A run's state between two steps, as one HDF5 file:
//   bytes 0..511     the seal (sealed_file.h)
//   attributes of /  format, model, classes, input_shape [C, H, W], epoch, step, sample, seed, best_accuracy,
//                    mean and std [C], options (JSON text)
//   /parameters/NAME, /statistics/NAME, /optimizer/NAME   float32 in row-major order, groups in the model's order
//   /averages/NAME   the same of a run with --ema: moving averages of all parameters, then of all statistics
//   /class_names     fixed-length UTF-8 strings by label; absent in files of older versions
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "kernels/device/tensor.h"

namespace convoy::app {

struct TensorName {
  std::string name;  // without '/'
  kernels::Shape shape;
  bool operator==(const TensorName&) const = default;
};

struct SavedTensor : TensorName {
  std::vector<float> values;  // row-major
};

// What must agree between a checkpoint and the network that it is loaded into.
struct ModelFingerprint {
  std::string model;
  std::int64_t classes = 0;
  kernels::Shape input_shape;  // [C, H, W]
  std::vector<TensorName> parameters, statistics, optimizer, averages;
};

struct CheckpointState {
  std::string model;
  std::int64_t classes = 0;
  std::vector<std::string> class_names;  // by label; empty: not known
  kernels::Shape input_shape;            // [C, H, W]
  std::vector<SavedTensor> parameters;
  std::vector<SavedTensor> statistics;  // batch normalisation's running means and variances
  std::vector<SavedTensor> optimizer;   // momenta
  std::vector<SavedTensor> averages;    // of parameters, then of statistics; empty without --ema
  std::int64_t epoch = 0;               // epochs finished
  std::int64_t step = 0;                // steps finished, of the whole run
  std::int64_t sample = 0;              // samples of the current epoch already used
  std::uint64_t seed = 0;
  double best_accuracy = 0;
  std::vector<float> mean, std;  // the normalisation that the network was trained with, per channel
  std::string options_json;
};

// Whole or absent: what was at `path` stays until the new file is complete. HDF5 builds the file in memory, as it
// cannot leave a file on a full disk without damage to itself; that takes the file's size of memory for the time
// of the call. Throws std::runtime_error, one line naming the file; std::invalid_argument for tensors whose
// values do not fill their shape or whose names are no names.
void save_checkpoint(const std::filesystem::path& path, const CheckpointState& state);

// Throws std::runtime_error, one line naming the file and what in it is missing or wrong.
CheckpointState load_checkpoint(const std::filesystem::path& path);

// Throws std::runtime_error naming `path`, and the models or the first tensor in which they differ. Optimizer
// tensors and averages are compared when `expected` lists any, as evaluation needs none.
void check_fingerprint(const std::filesystem::path& path, const CheckpointState& state,
                       const ModelFingerprint& expected);

// SHA-256 over the values alone, in the given (the model's) order, row-major, little-endian float32.
std::string parameters_sha256(std::span<const SavedTensor> parameters);

}  // namespace convoy::app

// A run's state between two steps, as one HDF5 file:
//   bytes 0..511     the seal (sealed_file.h)
//   attributes of /  format, model, classes, input_shape [C, H, W], epoch, step, sample, seed,
//                    best_accuracy, mean and std [C], options (JSON text)
//   /parameters/NAME, /statistics/NAME, /optimizer/NAME
//                    float32 in row-major order; groups in the order of the model
//   /averages/NAME   with --ema: moving averages of all parameters, then of all statistics
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

// The facts in which a checkpoint and the network that it is loaded into must agree.
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

// Writes the file whole or not at all: until it is complete the old file at `path` stays. HDF5
// builds the file in memory, which takes as many bytes, because it damages itself on a full disk.
// Throws std::runtime_error, one line naming the file, and std::invalid_argument for tensors whose
// values do not fill their shape or whose names are not valid.
void save_checkpoint(const std::filesystem::path& path, const CheckpointState& state);

// Throws std::runtime_error, one line that names the file and the part of it that is missing or
// wrong.
CheckpointState load_checkpoint(const std::filesystem::path& path);

// Throws std::runtime_error that names `path` and the models or the first tensor in which they
// differ. Optimizer tensors and averages are compared only if `expected` lists any: evaluation has
// none.
void check_fingerprint(const std::filesystem::path& path, const CheckpointState& state,
                       const ModelFingerprint& expected);

// Returns the SHA-256 of the values, row-major float32, little-endian, in the order of the model.
std::string parameters_sha256(std::span<const SavedTensor> parameters);

}  // namespace convoy::app

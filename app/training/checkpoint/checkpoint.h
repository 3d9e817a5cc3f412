// Saves and loads the state of a run between two steps as an HDF5 file with this content:
//   bytes 0..511     the seal, a checksum of the other bytes (sealed_file.h)
//   attributes of /  format, model, classes, input_shape [C, H, W], epoch, step, sample, seed,
//                    best_accuracy, mean and std [C], options (JSON text)
//   /parameters/NAME, /statistics/NAME, /optimizer/NAME
//                    float32 in row-major order; parameters and statistics keep the order of the
//                    model, the optimizer's that in which backward finishes the gradients
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
  std::string name;  // the name of the tensor, without '/'
  kernels::Shape shape;
  bool operator==(const TensorName&) const = default;
};

struct SavedTensor : TensorName {
  std::vector<float> values;  // in row-major order
};

// The properties of a network. They must be the same in a checkpoint and in the network that loads
// the checkpoint.
struct ModelFingerprint {
  std::string model;
  std::int64_t classes = 0;
  kernels::Shape input_shape;  // [C, H, W] of an image
  std::vector<TensorName> parameters, statistics, optimizer, averages;
};

struct CheckpointState {
  std::string model;
  std::int64_t classes = 0;
  std::vector<std::string> class_names;  // names by label; empty if they are not known
  kernels::Shape input_shape;            // [C, H, W] of an image
  std::vector<SavedTensor> parameters;
  std::vector<SavedTensor> statistics;  // running means and variances of batch norms
  std::vector<SavedTensor> optimizer;   // momenta and other states of the optimizer
  // Averages of the parameters, then of the statistics; empty without --ema.
  std::vector<SavedTensor> averages;
  std::int64_t epoch = 0;  // the number of finished epochs
  std::int64_t step = 0;   // the number of finished steps of the whole run
  // The number of samples that the current epoch has already used. A resumed run goes by `step`.
  std::int64_t sample = 0;
  std::uint64_t seed = 0;
  double best_accuracy = 0;  // top-1, from 0 to 1; -1 before the first test
  // The normalisation that the network was trained with, per channel.
  std::vector<float> mean, std;
  std::string options_json;
};

// Writes the file atomically: the old file at `path` stays until the new file is complete. Needs as
// much memory as the file has bytes, because HDF5 builds the file in memory. (If HDF5 wrote to the
// disk itself, a full disk would leave a damaged file.) Throws std::runtime_error in one line that
// names the file. Throws std::invalid_argument if the number of a tensor's values does not fit its
// shape or if its name is not valid.
void save_checkpoint(const std::filesystem::path& path, const CheckpointState& state);

// Loads a checkpoint. Throws std::runtime_error in one line that names the file and the part of it
// that is missing or wrong.
CheckpointState load_checkpoint(const std::filesystem::path& path);

// Throws std::runtime_error unless `state` fits the network that `expected` describes. The message
// names `path` and the two models, their input shapes, or the first tensor that differs. If
// `expected` has no optimizer tensors or averages, as in an evaluation, those of `state` are not
// checked.
void check_fingerprint(const std::filesystem::path& path, const CheckpointState& state,
                       const ModelFingerprint& expected);

// Returns the SHA-256 of the parameters' values as row-major, little-endian float32.
std::string parameters_sha256(std::span<const SavedTensor> parameters);

}  // namespace convoy::app

#include "app/training/checkpoint/checkpoint.h"

#include <fmt/core.h>
#include <hdf5.h>

#include <bit>
#include <stdexcept>

#include "app/training/checkpoint/hdf5.h"
#include "app/training/checkpoint/sealed_file.h"
#include "app/training/checkpoint/sha256.h"

namespace convoy::app {
namespace {

static_assert(std::endian::native == std::endian::little, "digests and files are little-endian");

constexpr std::int64_t kFormat = 1;

std::vector<std::int64_t> extents_of(const kernels::Shape& shape) {
  std::vector<std::int64_t> extents;
  for (int axis = 0; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
  return extents;
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& message) {
  throw std::runtime_error(fmt::format("{}: {}", path.string(), message));
}

void check_tensors(const std::filesystem::path& path, const char* kind, const std::vector<SavedTensor>& found,
                   const std::vector<TensorName>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, shape] = expected[i];
    if (i >= found.size() || found[i].name != name) {
      fail(path, fmt::format("{} {}: found '{}', expected '{}'", kind, i,
                             i < found.size() ? found[i].name : "nothing", name));
    }
    if (found[i].shape != shape) {
      fail(path, fmt::format("{} '{}': found shape {}, expected {}", kind, name, found[i].shape.to_string(),
                             shape.to_string()));
    }
  }
  if (found.size() > expected.size()) {
    fail(path, fmt::format("{} '{}' is unknown to the model", kind, found[expected.size()].name));
  }
}

void fill(CheckpointImage& image, const CheckpointState& state) {
  auto& root = image.root();
  root.write_number("format", kFormat);
  root.write_text("model", state.model);
  root.write_number("classes", state.classes);
  root.write_array<std::int64_t>("input_shape", extents_of(state.input_shape));
  root.write_number("epoch", state.epoch);
  root.write_number("step", state.step);
  root.write_number("sample", state.sample);
  root.write_number("seed", state.seed);
  root.write_number("best_accuracy", state.best_accuracy);
  root.write_array<float>("mean", state.mean);
  root.write_array<float>("std", state.std);
  root.write_text("options", state.options_json);
  image.write_tensors("parameters", state.parameters);
  image.write_tensors("statistics", state.statistics);
  image.write_tensors("optimizer", state.optimizer);
  if (!state.averages.empty()) image.write_tensors("averages", state.averages);
  if (!state.class_names.empty()) image.write_texts("class_names", state.class_names);
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const CheckpointState& state) {
  CheckpointImage image(path.string(), state);
  std::span<const std::byte> bytes;
  {
    // The lock ends with this block, so that other threads can use HDF5 while the file is written.
    const data::hdf5::LibraryLock lock;
    fill(image, state);
    bytes = image.finish();
  }
  write_sealed(path, bytes);
}

CheckpointState load_checkpoint(const std::filesystem::path& path) {
  check_seal(path);
  const data::hdf5::LibraryLock lock;
  const CheckpointReader file(path.string());
  const auto& root = file.root();
  const auto format = root.read_number<std::int64_t>("format");
  if (format != kFormat) fail(path, fmt::format("found format {}, expected {}", format, kFormat));
  CheckpointState state;
  state.model = root.read_text("model");
  state.classes = root.read_number<std::int64_t>("classes");
  state.input_shape = root.read_shape("input_shape");
  state.epoch = root.read_number<std::int64_t>("epoch");
  state.step = root.read_number<std::int64_t>("step");
  state.sample = root.read_number<std::int64_t>("sample");
  state.seed = root.read_number<std::uint64_t>("seed");
  state.best_accuracy = root.read_number<double>("best_accuracy");
  state.mean = root.read_array<float>("mean");
  state.std = root.read_array<float>("std");
  state.options_json = root.read_text("options");
  state.parameters = file.read_tensors("parameters");
  state.statistics = file.read_tensors("statistics");
  state.optimizer = file.read_tensors("optimizer");
  if (file.has("averages")) state.averages = file.read_tensors("averages");
  if (file.has("class_names")) state.class_names = file.read_texts("class_names");
  if (!state.class_names.empty() && std::ssize(state.class_names) != state.classes)
    fail(path,
         fmt::format("found {} names of classes, expected {}", state.class_names.size(), state.classes));
  return state;
}

void check_fingerprint(const std::filesystem::path& path, const CheckpointState& state,
                       const ModelFingerprint& expected) {
  if (state.model != expected.model || state.classes != expected.classes) {
    fail(path, fmt::format("is a checkpoint of model '{}' with {} classes, expected '{}' with {}",
                           state.model, state.classes, expected.model, expected.classes));
  }
  if (state.input_shape != expected.input_shape) {
    fail(path, fmt::format("was trained on images of shape {}, expected {}", state.input_shape.to_string(),
                           expected.input_shape.to_string()));
  }
  check_tensors(path, "parameter", state.parameters, expected.parameters);
  check_tensors(path, "statistic", state.statistics, expected.statistics);
  if (!expected.optimizer.empty())
    check_tensors(path, "optimizer tensor", state.optimizer, expected.optimizer);
  if (!expected.averages.empty()) check_tensors(path, "average", state.averages, expected.averages);
}

std::string parameters_sha256(std::span<const SavedTensor> parameters) {
  Sha256 hash;
  for (const auto& tensor : parameters)
    hash.update(tensor.values.data(), tensor.values.size() * sizeof(float));
  return hash.hex_digest();
}

}  // namespace convoy::app

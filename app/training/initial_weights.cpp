#include "app/training/initial_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "app/errors.h"
#include "app/model/import/model_file.h"
#include "app/model/weights/metadata.h"
#include "app/model/weights/safetensors.h"
#include "app/training/checkpoint/checkpoint.h"
#include "app/training/checkpoint/sha256.h"

namespace convoy::app {
namespace {

std::vector<Weight> weights_of(const std::shared_ptr<const CheckpointState>& state) {
  std::vector<Weight> weights;
  for (const auto* list : {&state->parameters, &state->statistics})
    for (const SavedTensor& tensor : *list) {
      Weight& weight = weights.emplace_back();
      weight.name = tensor.name;
      for (int axis = 0; axis < tensor.shape.rank(); ++axis) weight.shape.push_back(tensor.shape[axis]);
      weight.values = [state, &tensor] { return tensor.values; };
    }
  return weights;
}

// Reads the weights of an ONNX file. The file may store weights transposed, so it is imported as a
// network, which brings the weights into the order of Convoy's layers.
std::vector<Weight> weights_of_onnx(const ModelFile& file) {
  file.require_trainable();
  const Shape image = file.image();
  const auto network =
      std::make_shared<const Network>(file.network({1, image[0], image[1], image[2]}, file.classes()));
  std::vector<Weight> weights;
  for (const Layer& layer : network->layers())
    for (const auto* specs : {&layer.parameters, &layer.states})
      for (const ParameterSpec& spec : *specs) {
        if (!spec.values || spec.constant) continue;
        Weight& weight = weights.emplace_back();
        weight.name = spec.name;
        const Shape& shape = spec.shape_in_files();
        for (int axis = 0; axis < shape.rank(); ++axis) weight.shape.push_back(shape[axis]);
        weight.values = [network, &spec] { return *spec.values; };
      }
  return weights;
}

// Returns the names of the classes that `convoy export` has written, or nothing. Another program
// may use the same key for something else.
std::vector<std::string> class_names_of(const std::map<std::string, std::string>& metadata,
                                        const std::string& file) {
  try {
    return metadata_list<std::string>(metadata, "classes", file);
  } catch (const std::runtime_error&) {
    return {};
  }
}

// Finds by name which rows of the file's last layer (head) belong to the classes of the data. Files
// of other programs and of older versions have no names; their classes are assumed to have the same
// order.
void match_head(WeightOptions& options, const std::vector<std::string>& saved,
                const std::vector<std::string>& classes) {
  if (saved.empty() || saved == classes) return;
  for (const std::string& name : classes) {
    const auto found = std::ranges::find(saved, name);
    options.redraw_head = options.redraw_head || found == saved.end() ||
                          std::ranges::count(saved, name) > 1 || saved.size() != classes.size();
    options.head_rows.push_back(found - saved.begin());
  }
  if (options.redraw_head) options.head_rows.clear();
  // If the numbers of classes differ, do not set redraw_head. Then take_weights() itself finds that
  // the head does not fit, initialises it at random, and gives a message that names both numbers.
  if (saved.size() != classes.size()) options.redraw_head = false;
}

}  // namespace

FitRows set_initial_weights(Network& network, const std::string& file,
                            const std::vector<std::string>& classes) {
  WeightOptions options{file, {}, false};
  const std::string kind = std::filesystem::path(file).extension().string();
  if (kind == ".safetensors") {
    match_head(options, class_names_of(SafetensorsFile(file).metadata(), file), classes);
    return take_weights(network, read_safetensors_weights(file), options);
  }
  if (kind == ".onnx") {
    const ModelFile model(file);
    match_head(options, class_names_of(model.metadata(), file), classes);
    return take_weights(network, weights_of_onnx(model), options);
  }
  if (kind != ".h5")
    throw UsageError(
        fmt::format("--init: found '{}', expected a file that ends in .safetensors, .onnx or .h5", file));
  const auto state = std::make_shared<const CheckpointState>(load_checkpoint(file));
  match_head(options, state->class_names, classes);
  return take_weights(network, weights_of(state), options);
}

FitRows match_classes_of_model(Network& network, const std::string& file,
                               const std::vector<std::string>& classes) {
  WeightOptions options{file, {}, false};
  const std::vector<std::string> names = class_names_of(ModelFile(file).metadata(), file);
  if (names.size() != classes.size()) return {};
  match_head(options, names, classes);
  return change_heads(network, options);
}

std::string initial_weights_sha256(const Network& network) {
  Sha256 digest;
  for (const Layer& layer : network.layers())
    for (const auto* specs : {&layer.parameters, &layer.states})
      for (const ParameterSpec& spec : *specs)
        if (spec.values) digest.update(spec.values->data(), spec.values->size() * sizeof(float));
  return digest.hex_digest();
}

}  // namespace convoy::app

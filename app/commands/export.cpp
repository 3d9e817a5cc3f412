// `convoy export`: writes a checkpoint's network to a file that other programs read.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/validators.h"
#include "app/errors.h"
#include "app/json_text.h"
#include "app/model/export/onnx_export.h"
#include "app/model/weights/safetensors.h"
#include "app/model/zoo/zoo.h"
#include "app/training/checkpoint/folder.h"
#include "app/training/checkpoint/session_state.h"
#include "app/training/run_network.h"
#include "app/training/train_options.h"
#include "data/atomic_file.h"

namespace convoy::app {
namespace {

struct ExportOptions {
  std::string checkpoint, out;
  bool fold_batch_norm = false, ema = false;
};

// Returns the checkpoint's network. The initial values of its parameters and statistics are those
// of the checkpoint.
Network network_of(CheckpointState& state, const std::string& file) {
  const kernels::Shape& image = state.input_shape;
  const TrainOptions run = options_from_json(nlohmann::json::parse(state.options_json), file);
  Network network =
      make_network(state.model, {1, image[0], image[1], image[2]}, static_cast<int>(state.classes));
  check_structure(state, file, structure_sha256(network));
  network = with_outputs(std::move(network), run.loss_weights.size());
  std::vector<TensorName> parameters, statistics;
  for (const Layer& layer : network.layers()) {
    for (const ParameterSpec& spec : layer.parameters) parameters.push_back({spec.name, spec.shape});
    for (const ParameterSpec& spec : layer.states) statistics.push_back({spec.name, spec.shape});
  }
  check_fingerprint(file, state, {state.model, state.classes, image, parameters, statistics, {}, {}});
  auto parameter = state.parameters.begin(), statistic = state.statistics.begin();
  for (LayerId id = 0; id < std::ssize(network.layers()); ++id) {
    const Layer layer = network.layers()[static_cast<std::size_t>(id)];
    const auto give = [&](const std::vector<ParameterSpec>& specs, auto& from) {
      for (const ParameterSpec& spec : specs)
        network.parameter(id, spec.key).values =
            std::make_shared<const std::vector<float>>(std::move((from++)->values));
    };
    give(layer.parameters, parameter);
    give(layer.states, statistic);
  }
  return network;
}

// Returns the tensors that PyTorch's modules of this network have. In PyTorch a batch norm also has
// a tensor num_batches_tracked, the number of batches that it has seen. This number is `steps`.
std::vector<TensorToWrite> tensors_of(const Network& network, std::int64_t steps) {
  std::vector<TensorToWrite> tensors;
  for (const Layer& layer : network.layers()) {
    for (const auto* specs : {&layer.parameters, &layer.states})
      for (const ParameterSpec& spec : *specs) {
        if (spec.constant) continue;
        TensorToWrite& tensor = tensors.emplace_back();
        tensor.name = spec.name;
        const kernels::Shape& shape = spec.shape_in_files();
        for (int axis = 0; axis < shape.rank(); ++axis) tensor.shape.push_back(shape[axis]);
        tensor.values = *spec.values;
      }
    if (!std::holds_alternative<BatchNorm>(layer.op)) continue;
    const std::string& mean = layer.states[0].name;
    TensorToWrite& count = tensors.emplace_back();
    count.name = mean.substr(0, mean.rfind('.') + 1) + "num_batches_tracked";
    count.integer = steps;
    count.is_integer = true;
  }
  return tensors;
}

std::map<std::string, std::string> metadata_of(const CheckpointState& state) {
  std::map<std::string, std::string> metadata{{"model", state.model},
                                              {"step", std::to_string(state.step)},
                                              {"mean", json_text(nlohmann::json(state.mean))},
                                              {"std", json_text(nlohmann::json(state.std))}};
  if (!state.class_names.empty()) metadata["classes"] = json_text(nlohmann::json(state.class_names));
  return metadata;
}

void export_checkpoint(const ExportOptions& options) {
  const std::string kind = std::filesystem::path(options.out).extension().string();
  if (kind != ".onnx" && kind != ".safetensors")
    throw UsageError(
        fmt::format("--out: found '{}', expected a file that ends in .onnx or .safetensors", options.out));
  if (options.fold_batch_norm && kind != ".onnx")
    throw UsageError(
        "--fold-batch-norm: found a .safetensors file in --out, expected .onnx: its names are the "
        "network's, with its batch norms");
  const std::string file = checkpoint_file(options.checkpoint);
  CheckpointState state = load_checkpoint(file);
  if (options.ema) use_averages(state, file);
  const Network network = network_of(state, file);
  data::AtomicFile out(options.out);
  std::map<std::string, std::string> metadata = metadata_of(state);
  std::int64_t parameters = network.parameter_count();
  if (kind == ".onnx") {
    parameters = write_onnx(out.path(), network, {options.fold_batch_norm, metadata});
  } else {
    metadata["format"] = "pt";
    write_safetensors(out.path(), tensors_of(network, state.step), metadata);
  }
  out.commit();
  fmt::print("{}: {} of step {}, {} parameters, {} bytes\n", options.out, state.model, state.step, parameters,
             std::filesystem::file_size(options.out));
}

}  // namespace

void add_export_command(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* verb = app.add_subcommand("export", "Write a checkpoint's network for other programs");
  const auto add = [verb](const char* flag, std::string& value, const char* what) {
    return verb->add_option(flag, value, what)->check(not_empty())->required()->type_name("FILE");
  };
  add("--checkpoint", options->checkpoint, "checkpoint of `convoy train`, or a run's folder for its best");
  add("--out", options->out, "file to write: .safetensors with the weights, .onnx with the network too");
  verb->add_flag("--fold-batch-norm", options->fold_batch_norm,
                 ".onnx: put batch norms into the convolutions before them");
  verb->add_flag("--ema", options->ema, "the moving average of a run with --ema");
  verb->callback([options] { export_checkpoint(*options); });
}

}  // namespace convoy::app

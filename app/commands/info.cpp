#include "app/commands/info.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/info_memory.h"
#include "app/commands/info_within.h"
#include "app/commands/validators.h"
#include "app/compile/step_choices.h"
#include "app/model/zoo/zoo.h"
#include "app/training/report/build_info.h"
#include "app/training/train_options.h"

namespace convoy::app {
namespace {

struct InfoOptions {
  std::string model;
  std::int64_t size = 0, channels = 0, classes = 0, batch = 1;  // size, channels, classes: 0 if not given
  std::int64_t host_memory = 0, ranks = 1;
  bool build = false, json = false, memory = false;
  kernels::Backend backend = kernels::Backend::cpu;
  Precision precision = Precision::fp32;
  std::string plot;
  std::vector<std::int64_t> within;  // bytes; empty if not given
};

double mebibytes(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

nlohmann::json shape_json(const Shape& shape) {
  auto extents = nlohmann::json::array();
  for (int axis = 0; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
  return extents;
}

// Returns the names and shapes of the parameters and running statistics of all layers, as model
// files hold them.
nlohmann::json tensors_json(const Network& network) {
  auto tensors = nlohmann::json::array();
  for (const Layer& layer : network.layers())
    for (const bool trained : {true, false})
      for (const ParameterSpec& spec : trained ? layer.parameters : layer.states)
        if (!spec.constant)
          tensors.push_back(
              {{"name", spec.name}, {"shape", shape_json(spec.shape_in_files())}, {"trained", trained}});
  return tensors;
}

void print_json(const Network& network) {
  const std::vector<LayerRow> rows = layer_table(network);
  auto layers = nlohmann::json::array();
  for (const LayerRow& row : rows)
    layers.push_back({{"name", row.name},
                      {"kind", row.kind},
                      {"attributes", row.attributes},
                      {"inputs", row.inputs},
                      {"output", shape_json(row.output)},
                      {"parameters", row.parameters},
                      {"forward_flops", row.forward_flops},
                      {"activation_bytes", row.output_bytes}});
  const LayerRow total = total_of(rows);
  fmt::print("{}\n", nlohmann::json({{"model", network.name()},
                                     {"input", shape_json(network.shape(network.input()))},
                                     {"classes", network.shape(network.outputs()[0])[1]},
                                     {"layers", layers},
                                     {"tensors", tensors_json(network)},
                                     {"parameters", total.parameters},
                                     {"forward_flops", total.forward_flops},
                                     {"activation_bytes", total.output_bytes}})
                         .dump());
}

void print_table(const Network& network) {
  std::vector<LayerRow> rows = layer_table(network);
  rows.push_back(total_of(rows));
  const auto width_of = [&](std::size_t least, auto length) {
    for (const LayerRow& row : rows) least = std::max(least, length(row));
    return least;
  };
  const auto name = width_of(5, [](const LayerRow& row) { return row.name.size(); });
  const auto kind = width_of(4, [](const LayerRow& row) { return row.kind.size(); });
  const auto attributes = width_of(10, [](const LayerRow& row) { return row.attributes.size(); });
  const auto shape_text = [](const LayerRow& row) {
    return row.output.rank() > 0 ? row.output.to_string() : std::string();
  };
  const auto output = width_of(6, [&](const LayerRow& row) { return shape_text(row).size(); });
  fmt::print("{:<{}}  {:<{}}  {:<{}}  {:>{}}  {:>12}  {:>10}  {:>10}\n", "layer", name, "kind", kind,
             "attributes", attributes, "output", output, "parameters", "GFLOP", "MiB");
  for (const LayerRow& row : rows)
    fmt::print("{:<{}}  {:<{}}  {:<{}}  {:>{}}  {:>12}  {:>10.4f}  {:>10.3f}\n", row.name, name, row.kind,
               kind, row.attributes, attributes, shape_text(row), output, row.parameters,
               row.forward_flops * 1e-9, mebibytes(row.output_bytes));
  fmt::print("\nGFLOP: of one forward pass, a multiply-add is two. MiB: of the layer's output in fp32.\n");
  for (const std::string& note : network.notes()) fmt::print("{}: {}\n", network.name(), note);
}

void print_build(bool json) {
  auto entries = build_settings();
  entries.insert(entries.begin(), {{"convoy", convoy_version()}, {"commit", git_hash()}});
  for (auto& library : library_versions()) entries.push_back(std::move(library));
  if (json) {
    nlohmann::ordered_json object;
    for (const auto& [name, value] : entries) object[name] = value;
    fmt::print("{}\n", object.dump());
    return;
  }
  for (const auto& [name, value] : entries) fmt::print("{:<14} {}\n", name, value);
}

void print_models(bool json) {
  const auto names = network_names();
  if (json) return fmt::print("{}\n", nlohmann::json({{"models", names}}).dump());
  fmt::print("models         {}\n", fmt::join(names, ", "));
}

void info(const InfoOptions& options) {
  if (options.build) return print_build(options.json);
  if (options.model.empty()) return print_models(options.json);
  const NetworkRequest request{options.model, options.batch, options.channels, options.size, options.classes};
  const Network network = make_network(request);
  if (options.memory) {
    StepOptions step;
    step.backend = options.backend;
    step.precision = options.precision;
    step.synchronised_batch_norm = false;
    step.host_memory = options.host_memory;
    // Several ranks sum gradients before they update parameters (compile/early_updates.h).
    if (options.ranks > 1) step.early_update_bytes = std::numeric_limits<std::int64_t>::max();
    check_precision(options.backend, options.precision);
    if (!options.within.empty()) return print_within(request, step, options.within, options.json);
    return print_memory(network, step, options.json, options.plot);
  }
  if (options.json) return print_json(network);
  print_table(network);
}

}  // namespace

std::vector<LayerRow> layer_table(const Network& network) {
  std::vector<LayerRow> rows;
  for (const Layer& layer : network.layers()) {
    const auto shapes = network.input_shapes(layer);
    LayerRow row{layer.name, {}, {}, {}, layer.output};
    for (const LayerId input : layer.inputs)
      row.inputs.push_back(network.layers()[static_cast<std::size_t>(input)].name);
    std::visit(
        [&](const auto& op) {
          row.kind = op.kKind;
          row.attributes = op.attributes();
          row.forward_flops = op.flops(shapes);
        },
        layer.op);
    for (const ParameterSpec& spec : layer.parameters) row.parameters += spec.parameter_count();
    row.output_bytes = layer.output.elements() * static_cast<std::int64_t>(sizeof(float));
    rows.push_back(std::move(row));
  }
  return rows;
}

LayerRow total_of(const std::vector<LayerRow>& rows) {
  LayerRow total;
  total.name = "total";
  for (const LayerRow& row : rows) {
    total.parameters += row.parameters;
    total.forward_flops += row.forward_flops;
    total.output_bytes += row.output_bytes;
  }
  return total;
}

void add_info_command(CLI::App& app) {
  auto options = std::make_shared<InfoOptions>();
  auto* verb = app.add_subcommand("info", "Show a network's layers, or what this program was built from");
  auto* model = verb->add_option("--model", options->model,
                                 "network of the zoo or FILE.onnx; without it: the zoo's names")
                    ->check(not_empty())
                    ->type_name("NAME");
  verb->add_option("--size", options->size, "pixels a side of the images; default: the file's, else 224")
      ->check(whole_number(1, 1 << 13));
  verb->add_option("--channels", options->channels, "of the images; default: the file's, else 3")
      ->check(whole_number(1, 1 << 10));
  verb->add_option("--classes", options->classes,
                   "default: the file's, else 1000 above 64 pixels a side, else 10")
      ->check(whole_number(1, 1 << 20));
  verb->add_option("--batch", options->batch, "images")
      ->capture_default_str()
      ->check(whole_number(1, 1 << 16));
  verb->add_flag("--build", options->build,
                 "compiler, libraries and commit of this program, instead of a model")
      ->excludes(model);
  auto* memory = verb->add_flag("--memory", options->memory,
                                "the memory that a training step needs, and its time within less")
                     ->needs(model);
  add_choice(*verb, "--backend", options->backend, "of --memory")->needs(memory);
  add_choice(*verb, "--precision", options->precision, "of --memory")->needs(memory);
  verb->add_option("--host-memory", options->host_memory, "of --memory: for activations that wait there")
      ->transform(size_or_zero())
      ->type_name("SIZE")
      ->needs(memory);
  verb->add_option(
          "--ranks", options->ranks,
          "of --memory: ranks that sum gradients, each with a batch of B; one alone frees gradients early")
      ->check(whole_number(1, 1 << 20))
      ->needs(memory);
  auto* plot = verb->add_option("--plot", options->plot, "draws --memory")
                   ->check(not_empty())
                   ->type_name("FILE.svg")
                   ->needs(memory);
  verb->add_option("--within", options->within,
                   "of --memory: the largest batch, and the largest images, that train within these sizes")
      ->transform(size_in_bytes())
      ->type_name("SIZE")
      ->delimiter(',')
      ->needs(memory)
      ->excludes(plot);
  verb->add_flag("--json", options->json, "one JSON object");
  verb->callback([options] { info(*options); });
}

}  // namespace convoy::app

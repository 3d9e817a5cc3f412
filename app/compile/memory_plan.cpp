#include "app/compile/memory_plan.h"

#include <algorithm>

#include "app/compile/compiled_steps.h"
#include "kernels/device/mix_parameters.h"

namespace convoy::app {
namespace {

constexpr std::int64_t kMetricsBytes = 8 * std::int64_t{sizeof(double)};

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::int64_t bytes_of_states(const CompiledGraph& compiled) {
  std::int64_t bytes = 0;
  for (const auto& [tensor, spec] : compiled.graph.states)
    bytes += round_up(static_cast<std::int64_t>(compiled.descs[static_cast<std::size_t>(tensor)].bytes()),
                      kStateAlignment);
  return bytes;
}

}  // namespace

std::string_view name_of(Region region) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(Region::count)> kNames{
      "images",      "control",    "parameters", "bf16 parameters",
      "optimizer",   "statistics", "averages",   "accumulated gradients",
      "labels",      "transforms", "mix",        "metrics",
      "activations", "gradients",  "all-reduce"};
  return kNames[static_cast<std::size_t>(region)];
}

MemoryPlan::MemoryPlan(const CompiledSteps& steps, const StepOptions& options,
                       const std::function<std::size_t(std::size_t bytes)>& shared_scratch)
    : members_(static_cast<int>(options.members.size())),
      shared_images_(options.input.kind != InputOptions::Kind::filled) {
  const bool training = steps.train.has_value();
  const CompiledGraph& main = steps.main();
  const StepGraph& graph = main.graph;
  const std::int64_t flat_bytes = steps.flat.elements * std::int64_t{sizeof(float)};
  const std::int64_t trained_bytes = steps.flat.trained_elements * std::int64_t{sizeof(float)};
  const std::int64_t gradient_bytes = steps.flat.gradient_elements * std::int64_t{sizeof(float)};
  // The id is -1 if the step lacks the tensor. For example only one stage of a partitioned step has
  // the labels.
  const auto bytes_of = [&](TensorId id) {
    return id < 0 ? 0 : static_cast<std::int64_t>(main.descs[static_cast<std::size_t>(id)].bytes());
  };
  const bool streamed = options.input.kind == InputOptions::Kind::streamed;
  add(Region::images, bytes_of(graph.images) * (streamed ? options.input.batches : 1));
  add(Region::control, sizeof(kernels::StepControl));
  add(Region::parameters, flat_bytes);
  if (steps.flat.copied) add(Region::bf16_parameters, flat_bytes / 2);
  const int states = kernels::optimizer_states(options.optimizer);
  if (training && states > 0) add(Region::optimizer, states * trained_bytes);
  add(Region::statistics, bytes_of_states(main));
  if (training && options.optimizer.averages) add(Region::averages, trained_bytes + bytes_of_states(main));
  if (training && options.accumulate) add(Region::accumulated_gradients, gradient_bytes);
  add(Region::labels, bytes_of(graph.labels));
  if (graph.transforms >= 0) add(Region::transforms, bytes_of(graph.transforms));
  if (graph.mix_of_images >= 0 || graph.mix_of_labels >= 0) add(Region::mix, sizeof(kernels::MixParameters));
  add(Region::metrics, kMetricsBytes);
  // The optimizer's update comes after backward, so its workspace can use the region of the
  // activations.
  add(Region::activations,
      std::max({training ? steps.train->activation_bytes : 0, steps.evaluate.activation_bytes,
                static_cast<std::int64_t>(steps.update.workspace_bytes())}));
  if (!training) return;
  add(Region::gradients, gradient_bytes);
  if (!shared_scratch) return;
  const std::size_t scratch = shared_scratch(static_cast<std::size_t>(bytes(Region::gradients)));
  if (scratch > 0) add(Region::all_reduce, static_cast<std::int64_t>(scratch));
}

void MemoryPlan::add(Region region, std::int64_t bytes) { bytes_[index(region)] = round_up(bytes, kPage); }

std::int64_t MemoryPlan::offset(Region region) const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < index(region); ++i) sum += std::max<std::int64_t>(bytes_[i], 0);
  return sum;
}

std::int64_t MemoryPlan::stride() const {
  return offset(Region::count) - (shared_images_ ? bytes(Region::images) : 0);
}

std::int64_t MemoryPlan::total() const { return offset(Region::count) + (members_ - 1) * stride(); }

std::vector<MemoryUse> MemoryPlan::uses() const {
  std::vector<MemoryUse> uses;
  for (std::size_t i = 0; i < bytes_.size(); ++i)
    if (const auto region = static_cast<Region>(i); has(region))
      uses.push_back({std::string(name_of(region)), bytes_[i] * (shares(region) ? 1 : members_)});
  return uses;
}

}  // namespace convoy::app

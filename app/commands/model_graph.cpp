#include "app/commands/model_graph.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

#include "app/errors.h"
#include "app/model/zoo/zoo.h"
#include "app/model_parallel/step_tasks.h"
#include "app/prediction/step_profile.h"

namespace convoy::app {
namespace {

struct ModelText {
  std::string name;
  std::int64_t batch = 0, size = 0;  // size 0: not given
};

// Removes the last colon of the text and the whole number after it, and returns the number. Returns
// 0 and changes nothing if no valid number is there.
std::int64_t take_number(std::string_view& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return 0;
  const std::string_view digits = text.substr(colon + 1);
  constexpr std::int64_t kMost = 1 << 24;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 1 || number > kMost) return 0;
  text.remove_suffix(digits.size() + 1);
  return number;
}

ModelText parse(const std::string& text) {
  std::string_view rest = std::string_view(text).substr(kModelGraph.size());
  ModelText model;
  model.batch = take_number(rest);
  if (const std::int64_t before = model.batch > 0 ? take_number(rest) : 0; before > 0)
    model.size = model.batch, model.batch = before;
  model.name = rest;
  if (model.batch == 0 || model.name.empty())
    throw UsageError(fmt::format(
        "--graph: found '{:.80}', expected model:NAME:BATCH[:SIZE], as model:resnet50:256", text));
  return model;
}

Network network_of(const ModelText& model, std::int64_t size) {
  return make_network({model.name, model.batch, 0, size, 0});
}

// Returns the time of each node from the profile. A node takes the first operation that has its
// layer and kind and that no earlier node took. Throws if there is no such operation left.
std::vector<double> matched(const StepGraph& graph, const StepProfile& profile, const std::string& file) {
  std::vector<bool> taken(profile.operations.size(), false);
  std::vector<double> times;
  for (const Node& node : graph.nodes) {
    std::size_t at = 0;
    while (at < taken.size() && (taken[at] || profile.operations[at].layer != node.layer ||
                                 profile.operations[at].kind != node.name()))
      ++at;
    if (at == taken.size())
      throw std::runtime_error(fmt::format("{}: has no time for {}/{}: it is of another network or build",
                                           file, node.layer, node.name()));
    taken[at] = true;
    times.push_back(profile.operations[at].ms);
  }
  return times;
}

CompiledGraph with_sizes(StepGraph graph, Precision precision) {
  CompiledGraph step;
  for (const Tensor& tensor : graph.tensors) {
    kernels::TensorDesc desc{tensor.dtype, tensor.shape, kernels::Layout::row_major, nullptr};
    if (tensor.dtype == kernels::DType::u8 &&
        tensor.role == TensorRole::activation)  // the tensor is a mask with one bit per element
      desc.shape = {(tensor.shape.elements() + 7) / 8};
    if (precision == Precision::bf16 && tensor.dtype == kernels::DType::f32 &&
        (tensor.role == TensorRole::activation || tensor.role == TensorRole::images))
      desc.dtype = kernels::DType::bf16;
    step.descs.push_back(desc);
  }
  step.graph = std::move(graph);
  return step;
}

double update_ms(const StepProfile& profile) {
  double sum = 0;
  for (const TimedOperation& operation : profile.operations)
    if (operation.after_gradients) sum += operation.ms;
  return sum;
}

}  // namespace

partition::TaskGraph model_task_graph(const std::string& text, const std::string& profile_file,
                                      const std::string& topology) {
  const ModelText model = parse(text);
  // Report an unknown name before any defect of other files. Do not read a model file twice.
  if (!model.name.ends_with(".onnx")) network_of(model, model.size);
  if (profile_file.empty() && topology.empty())
    throw UsageError(
        "--graph model: takes times from --profile, or estimates them for the device of a --topology as in "
        "jobs/topologies");
  DeviceRates device;
  StepProfile profile;
  if (!profile_file.empty()) {
    profile = read_profile(profile_file);
    if (profile.model != model.name || profile.batch != model.batch ||
        (model.size > 0 && model.size != profile.size))
      throw UsageError(fmt::format("--profile {}: is of {} with batch {} at {} pixels, expected one of {}",
                                   profile_file, profile.model, profile.batch, profile.size, text));
    device.backend = profile.backend;
  } else {
    device = Cluster::read(topology).device();
    profile.precision = device.backend == kernels::Backend::cuda ? Precision::bf16 : Precision::fp32;
    profile.size = model.size > 0 ? model.size : default_size(model.name);
  }
  const Network network = network_of(model, profile.size);
  StepGraph graph =
      predicted_graph(network, profile.precision, device,
                      profile.measured ? has_norm_inputs(profile) : profile.precision == Precision::bf16);
  if (!profile.measured) profile = estimate_profile(network, profile.precision, device);
  TaskCosts costs;
  costs.times.node_ms = matched(graph, profile, profile_file);
  costs.times.update_ms_per_element = update_ms(profile) / static_cast<double>(network.parameter_count());
  costs.optimizer_states = 1;
  const StepDependences dependences = find_dependences(graph);
  return make_step_tasks(with_sizes(std::move(graph), profile.precision), dependences, costs);
}

}  // namespace convoy::app

#include "app/execute/model_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace convoy::app {
namespace {

constexpr std::int64_t kPage = 4096;
// Elements: 256 bytes of the bf16 copy, what the copy engine asks the L2 cache for at once. Where a row of filters, 128 bytes,
// lies across two lines, convolutions that wait for that cache take up to a third longer.
constexpr std::int64_t kSegmentAlignment = 128;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::int64_t bytes_of_states(const CompiledGraph& compiled) {
  std::int64_t bytes = 0;
  for (const auto& [tensor, spec] : compiled.graph.states)
    bytes +=
        round_up(static_cast<std::int64_t>(compiled.descs[static_cast<std::size_t>(tensor)].bytes()), 64);
  return bytes;
}

}  // namespace

FlatLayout::FlatLayout(const CompiledGraph& compiled) : parameter(compiled.graph.parameters_by_gradient()) {
  for (const int index : parameter) {
    const TrainableParameter& one = compiled.graph.parameters[static_cast<std::size_t>(index)];
    const auto bytes =
        static_cast<std::int64_t>(compiled.descs[static_cast<std::size_t>(one.tensor)].bytes());
    const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float));
    segments.push_back({elements, count, one.spec.decay, one.spec.decay});
    elements += round_up(count, kSegmentAlignment);
    copied = copied || one.copy >= 0;
  }
}

std::vector<MemoryUse> plan_memory(const CompiledGraph* train, const CompiledGraph& evaluate,
                                   const FlatLayout& flat, const MemoryRequest& request) {
  const CompiledGraph& main = train != nullptr ? *train : evaluate;
  const auto& graph = main.graph;
  const std::int64_t flat_bytes = flat.elements * static_cast<std::int64_t>(sizeof(float));
  std::vector<MemoryUse> uses;
  const auto use = [&](const char* purpose, std::int64_t bytes) {
    uses.push_back({purpose, round_up(bytes, kPage)});
  };
  const auto bytes_of = [&](TensorId id) {  // -1: another part of a partitioned step has it
    return id < 0 ? 0 : static_cast<std::int64_t>(main.descs[static_cast<std::size_t>(id)].bytes());
  };
  use("parameters", flat_bytes);
  if (flat.copied) use("bf16 parameters", flat_bytes / 2);
  if (train != nullptr && request.optimizer_states > 0)
    use("optimizer", request.optimizer_states * flat_bytes);
  use("statistics", bytes_of_states(main));
  if (train != nullptr && request.averages) use("averages", flat_bytes + bytes_of_states(main));
  if (train != nullptr && request.accumulates) use("accumulated gradients", flat_bytes);
  use("images", bytes_of(graph.images));
  use("labels", bytes_of(graph.labels));
  if (graph.transforms >= 0) use("transforms", bytes_of(graph.transforms));
  if (graph.mix_of_images >= 0 || graph.mix_of_labels >= 0) use("mix", sizeof(kernels::MixParameters));
  use("metrics", 8 * static_cast<std::int64_t>(sizeof(double)));
  use("activations", std::max({train != nullptr ? train->activation_bytes : 0, evaluate.activation_bytes,
                               static_cast<std::int64_t>(request.update_workspace)}));
  // Last: ranks of one host may share them elsewhere.
  if (train != nullptr) use("gradients", flat_bytes);
  if (train != nullptr && request.shared_scratch)
    if (const std::size_t scratch = request.shared_scratch(static_cast<std::size_t>(uses.back().bytes)))
      use("all-reduce", static_cast<std::int64_t>(scratch));
  return uses;
}

std::int64_t total_bytes(const std::vector<MemoryUse>& uses) {
  std::int64_t sum = 0;
  for (const MemoryUse& use : uses) sum += use.bytes;
  return sum;
}

ModelMemory::ModelMemory(kernels::Backend backend, const CompiledGraph* train, const CompiledGraph& evaluate,
                         FlatLayout flat, const MemoryRequest& request)
    : uses_(plan_memory(train, evaluate, flat, request)), flat_(std::move(flat)) {
  const CompiledGraph& main = train != nullptr ? *train : evaluate;
  has_images_ = main.graph.images >= 0;
  if (has_images_) images_desc_ = main.descs[static_cast<std::size_t>(main.graph.images)];
  has_labels_ = main.graph.labels >= 0;
  if (const TensorId of_samples = has_labels_ ? main.graph.labels : main.graph.transforms; of_samples >= 0)
    capacity_ = main.graph.tensors[static_cast<std::size_t>(of_samples)].shape[0];
  set_offsets();
  const auto bytes_of = [&](std::string_view purpose) {
    return std::ranges::find(uses_, purpose, &MemoryUse::purpose)->bytes;
  };
  if (request.limit > 0 && planned_ > request.limit)
    throw std::runtime_error(
        fmt::format("--memory-limit {} bytes: the plan needs {} bytes a rank ({} of them activations); "
                    "a smaller batch, more ranks or --partition need less",
                    request.limit, planned_, bytes_of("activations")));
  if (train != nullptr && request.shared_memory)
    shared_gradients_ = request.shared_memory(static_cast<std::size_t>(bytes_of("gradients")));
  if (!shared_gradients_ &&
      std::erase_if(uses_, [](const auto& use) { return use.purpose == "all-reduce"; }) > 0)
    set_offsets();
  const auto bytes = static_cast<std::size_t>(shared_gradients_ ? offset_.at("gradients") : planned_);
  if (request.transfer_memory) transfer_memory_ = request.transfer_memory(bytes);
  if (!transfer_memory_) arena_ = kernels::Arena(backend, bytes);
  list_tensors(main, train != nullptr ? request.optimizer_states : 0);
}

void ModelMemory::set_offsets() {
  planned_ = 0;
  for (const MemoryUse& use : uses_) {
    offset_[use.purpose] = planned_;
    planned_ += use.bytes;
  }
}

void ModelMemory::list_tensors(const CompiledGraph& compiled, int optimizer_states) {
  const auto& graph = compiled.graph;
  parameters_.resize(graph.parameters.size());
  for (std::size_t i = 0; i < flat_.segments.size(); ++i) {
    const auto index = static_cast<std::size_t>(flat_.parameter[i]);
    const std::int64_t offset = flat_.segments[i].offset;
    const TrainableParameter& parameter = graph.parameters[index];
    const auto& desc = compiled.descs[static_cast<std::size_t>(parameter.tensor)];
    parameters_[index] = {parameter.spec.name, desc, flat_parameters() + offset};
    by_name_[parameter.spec.name] = parameters_[index].address;
    if (parameter.gradient >= 0) by_name_[parameter.spec.name + ".gradient"] = flat_gradients() + offset;
    if (parameter.copy >= 0)
      by_name_[parameter.spec.name + ".bf16"] = static_cast<std::uint16_t*>(flat_copy()) + offset;
    for (int state = 0; state < optimizer_states; ++state)
      optimizer_states_.push_back({fmt::format("{}.optimizer{}", parameter.spec.name, state), desc,
                                   flat_optimizer_state(state) + offset});
  }
  statistics_elements_ = bytes_of_states(compiled) / static_cast<std::int64_t>(sizeof(float));
  std::byte* next = base("statistics");
  for (const auto& [tensor, spec] : graph.states) {
    const auto& desc = compiled.descs[static_cast<std::size_t>(tensor)];
    states_.push_back({spec.name, desc, next});
    by_name_[spec.name] = next;
    next += round_up(static_cast<std::int64_t>(desc.bytes()), 64);
  }
  if (!offset_.contains("averages")) return;
  for (const PersistentTensor& of : parameters_) {
    const auto at = static_cast<const float*>(of.address) - flat_parameters();
    averages_.push_back({of.name + ".ema", of.desc, flat_averages() + at});
  }
  for (const PersistentTensor& of : states_) {
    const auto at = static_cast<const float*>(of.address) - statistics();
    averages_.push_back({of.name + ".ema", of.desc, statistics_averages() + at});
  }
}

float* ModelMemory::flat_optimizer_state(int index) const {
  return reinterpret_cast<float*>(base("optimizer")) + index * flat_.elements;
}

void* ModelMemory::address(const CompiledGraph& compiled, TensorId id) const {
  const Tensor& tensor = compiled.graph.tensors[static_cast<std::size_t>(id)];
  switch (tensor.role) {
    case TensorRole::images:
      return images();
    case TensorRole::labels:
      return labels();
    case TensorRole::transforms:
      return transforms();
    case TensorRole::mix:
      return mix();
    case TensorRole::metrics:
      return metrics();
    case TensorRole::parameter_copy:
      return by_name_.at(tensor.name + ".bf16");
    case TensorRole::parameter:
    case TensorRole::gradient:
    case TensorRole::state:
      return by_name_.at(tensor.name);
    case TensorRole::activation:
      return base("activations") + compiled.tensor_offset[static_cast<std::size_t>(id)];
  }
  throw std::logic_error("a tensor without a role");
}

void* ModelMemory::workspace(const CompiledGraph& compiled, std::size_t node) const {
  const std::int64_t offset = compiled.workspace_offset[node];
  return offset < 0 ? nullptr : base("activations") + offset;
}

}  // namespace convoy::app

#include "app/runtime/model_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace convoy::app {
namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kSegmentAlignment = 16;  // floats: one cache line

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::int64_t bytes_of_states(const PreparedGraph& prepared) {
  std::int64_t bytes = 0;
  for (const auto& [tensor, spec] : prepared.graph.states)
    bytes +=
        round_up(static_cast<std::int64_t>(prepared.descs[static_cast<std::size_t>(tensor)].bytes()), 64);
  return bytes;
}

}  // namespace

ModelMemory::ModelMemory(kernels::Backend backend, const PreparedGraph* train, const PreparedGraph& evaluate,
                         int optimizer_states, std::int64_t limit) {
  plan(train, evaluate, optimizer_states);
  if (limit > 0 && planned_ > limit)
    throw std::runtime_error(
        fmt::format("--memory-limit {} bytes: the plan needs {} bytes a rank ({} of them activations); "
                    "a smaller --global-batch, more ranks or --partition need less",
                    limit, planned_, uses_.back().bytes));
  arena_ = kernels::Arena(backend, static_cast<std::size_t>(planned_));
  list_tensors(train != nullptr ? *train : evaluate, train != nullptr ? optimizer_states : 0);
}

std::int64_t ModelMemory::planned_bytes(const PreparedGraph* train, const PreparedGraph& evaluate,
                                        int optimizer_states) {
  ModelMemory memory;
  memory.plan(train, evaluate, optimizer_states);
  return memory.planned_;
}

void ModelMemory::plan(const PreparedGraph* train, const PreparedGraph& evaluate, int optimizer_states) {
  const PreparedGraph& main = train != nullptr ? *train : evaluate;
  lay_out_segments(main);
  const std::int64_t flat_bytes = flat_elements_ * static_cast<std::int64_t>(sizeof(float));
  use("parameters", flat_bytes);
  if (train != nullptr) {
    use("gradients", flat_bytes);
    if (optimizer_states > 0) use("optimizer", optimizer_states * flat_bytes);
  }
  const auto bytes_of = [&](TensorId id) {  // -1: of another part
    return id < 0 ? 0 : static_cast<std::int64_t>(main.descs[static_cast<std::size_t>(id)].bytes());
  };
  use("statistics", bytes_of_states(main));
  use("images", bytes_of(main.graph.images));
  use("labels", bytes_of(main.graph.labels));
  use("metrics", 8 * static_cast<std::int64_t>(sizeof(double)));
  use("activations", std::max(train != nullptr ? train->activation_bytes : 0, evaluate.activation_bytes));
}

void ModelMemory::use(const std::string& purpose, std::int64_t bytes) {
  const std::int64_t rounded = round_up(bytes, kPage);
  offset_[purpose] = planned_;
  uses_.push_back({purpose, rounded});
  planned_ += rounded;
}

void ModelMemory::lay_out_segments(const PreparedGraph& prepared) {
  segment_parameter_ = prepared.graph.parameters_by_gradient();
  for (const int index : segment_parameter_) {
    const TrainableParameter& parameter = prepared.graph.parameters[static_cast<std::size_t>(index)];
    const auto bytes =
        static_cast<std::int64_t>(prepared.descs[static_cast<std::size_t>(parameter.tensor)].bytes());
    const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float));
    segments_.push_back({flat_elements_, count, parameter.spec.decay, parameter.spec.decay});
    flat_elements_ += round_up(count, kSegmentAlignment);
  }
}

void ModelMemory::list_tensors(const PreparedGraph& prepared, int optimizer_states) {
  const auto& graph = prepared.graph;
  parameters_.resize(graph.parameters.size());
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const auto index = static_cast<std::size_t>(segment_parameter_[i]);
    const TrainableParameter& parameter = graph.parameters[index];
    const auto& desc = prepared.descs[static_cast<std::size_t>(parameter.tensor)];
    parameters_[index] = {parameter.spec.name, desc, flat_parameters() + segments_[i].offset};
    by_name_[parameter.spec.name] = parameters_[index].address;
    if (parameter.gradient >= 0)
      by_name_[parameter.spec.name + ".gradient"] = flat_gradients() + segments_[i].offset;
    for (int state = 0; state < optimizer_states; ++state)
      optimizer_states_.push_back({fmt::format("{}.optimizer{}", parameter.spec.name, state), desc,
                                   flat_optimizer_state(state) + segments_[i].offset});
  }
  std::byte* next = base("statistics");
  for (const auto& [tensor, spec] : graph.states) {
    const auto& desc = prepared.descs[static_cast<std::size_t>(tensor)];
    states_.push_back({spec.name, desc, next});
    by_name_[spec.name] = next;
    next += round_up(static_cast<std::int64_t>(desc.bytes()), 64);
  }
}

float* ModelMemory::flat_optimizer_state(int index) const {
  return reinterpret_cast<float*>(base("optimizer")) + index * flat_elements_;
}

void* ModelMemory::address(const PreparedGraph& prepared, TensorId id) const {
  const Tensor& tensor = prepared.graph.tensors[static_cast<std::size_t>(id)];
  switch (tensor.role) {
    case TensorRole::images:
      return images();
    case TensorRole::labels:
      return labels();
    case TensorRole::metrics:
      return metrics();
    case TensorRole::parameter:
    case TensorRole::gradient:
    case TensorRole::state:
      return by_name_.at(tensor.name);
    case TensorRole::activation:
      return base("activations") + prepared.tensor_offset[static_cast<std::size_t>(id)];
  }
  throw std::logic_error("a tensor without a role");
}

void* ModelMemory::workspace(const PreparedGraph& prepared, std::size_t node) const {
  const std::int64_t offset = prepared.workspace_offset[node];
  return offset < 0 ? nullptr : base("activations") + offset;
}

}  // namespace convoy::app

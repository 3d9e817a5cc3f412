#include "app/execute/model_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "kernels/device/device_memory.h"

namespace convoy::app {
namespace {

std::int64_t padded(std::int64_t bytes) {
  constexpr auto kAlignment = static_cast<std::int64_t>(kStateAlignment);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

MemoryPart part_of(Region region) {
  switch (region) {
    case Region::images:
    case Region::control:
    case Region::labels:
    case Region::transforms:
    case Region::mix:
    case Region::metrics:
      return MemoryPart::inputs;
    case Region::activations:
    case Region::accumulated_gradients:
    case Region::gradients:
    case Region::all_reduce:
      return MemoryPart::scratch;
    default:
      return MemoryPart::state;
  }
}

kernels::Arena host_memory(const StepOptions& options, std::int64_t bytes) {
  try {
    return kernels::Arena::for_copies(options.backend, static_cast<std::size_t>(bytes));
  } catch (const std::exception& error) {
    throw std::runtime_error(
        fmt::format("--host-memory: cannot reserve the {} bytes in which activations of this rank wait, a "
                    "lower value needs fewer: {}",
                    bytes, error.what()));
  }
}

}  // namespace

ModelMemory::ModelMemory(const CompiledSteps& steps, const StepOptions& options, const SharedMemory& shared)
    : plan_(steps, options, shared.scratch), flat_(steps.flat) {
  const CompiledGraph& main = steps.main();
  has_images_ = main.graph.images >= 0;
  if (has_images_) images_desc_ = main.descs[static_cast<std::size_t>(main.graph.images)];
  has_labels_ = main.graph.labels >= 0;
  if (const TensorId of_samples = has_labels_ ? main.graph.labels : main.graph.transforms; of_samples >= 0)
    capacity_ = main.graph.tensors[static_cast<std::size_t>(of_samples)].shape[0];
  if (options.memory_limit > 0 && plan_.total() > options.memory_limit)
    throw std::runtime_error(fmt::format(
        "--memory-limit {} bytes: the step needs at least {} bytes a rank, {} of them for activations{}; "
        "a smaller batch{}{} or --partition need less",
        options.memory_limit, plan_.total(), plan_.bytes(Region::activations),
        steps.fit.least_at.empty() ? "" : fmt::format(" while it runs {}", steps.fit.least_at),
        steps.flat.gradients < steps.flat.trained ? "" : ", more ranks",  // more would lose early updates
        steps.fit.host_limit > steps.fit.host_bytes ? "" : ", more --host-memory"));
  if (steps.train && steps.train->host_bytes > 0) host_ = host_memory(options, steps.train->host_bytes);
  if (steps.train && shared.gradients)
    shared_gradients_ = shared.gradients(static_cast<std::size_t>(plan_.bytes(Region::gradients)));
  if (!shared_gradients_) plan_.drop(Region::all_reduce);
  const auto bytes =
      static_cast<std::size_t>(shared_gradients_ ? plan_.offset(Region::gradients) : plan_.total());
  if (shared.arena) transfer_memory_ = shared.arena(bytes);
  if (shared.parts)
    divide(shared.parts);
  else if (!transfer_memory_)
    arena_ = kernels::Arena(options.backend, bytes);
  if (!shared.parts) start_ = transfer_memory_ ? transfer_memory_.get() : arena_.data();
  list_tensors(main, steps.train ? kernels::optimizer_states(options.optimizer) : 0);
  for (const auto* tensors : {&optimizer_states_, &averages_})
    for (const PersistentTensor& tensor : *tensors) by_name_[tensor.name] = tensor.address;
}

// Reserves the regions in the three parts of device_gate.h (MemoryPart). If the session has several
// members (trainings that run together), all regions repeat at one stride, so their memory must be
// contiguous. All of it is then in the part that no other session uses.
void ModelMemory::divide(const std::function<MemoryPlace(const MemoryNeed& need)>& reserve) {
  const auto part = [](MemoryPart of) { return static_cast<std::size_t>(of); };
  MemoryNeed need;
  if (members() > 1) {
    need.bytes[part(MemoryPart::inputs)] = plan_.total();
    start_ = reserve(need).start[part(MemoryPart::inputs)];
    return;
  }
  std::array<std::int64_t, static_cast<std::size_t>(Region::count)> offsets{};
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto region = static_cast<Region>(i);
    if (!plan_.has(region)) continue;
    std::int64_t& bytes = need.bytes[part(part_of(region))];
    offsets[i] = std::exchange(bytes, bytes + plan_.bytes(region));
  }
  const MemoryPlace place = reserve(need);
  for (std::size_t i = 0; i < offsets.size(); ++i)
    starts_[i] = place.start[part(part_of(static_cast<Region>(i)))] + offsets[i];
  divided_ = true;
}

MemoryRange ModelMemory::state() const {
  MemoryRange state;
  for (std::size_t i = 0; divided_ && i < starts_.size(); ++i) {
    const auto region = static_cast<Region>(i);
    if (!plan_.has(region) || part_of(region) != MemoryPart::state) continue;
    if (state.begin == nullptr) state.begin = starts_[i];  // the other regions of this part come after it
    state.bytes += plan_.bytes(region);
  }
  return state;
}

void ModelMemory::clear(kernels::Backend backend) {
  if (transfer_memory_) throw std::logic_error("memory that stages share is not cleared");
  if (divided_) {
    for (std::size_t i = 0; i < starts_.size(); ++i)
      if (const auto region = static_cast<Region>(i); region != Region::images && plan_.bytes(region) > 0)
        kernels::clear(backend, starts_[i], static_cast<std::size_t>(plan_.bytes(region)), {});
    return kernels::synchronize(backend);
  }
  const auto images = static_cast<std::size_t>(plan_.offset(Region::control));
  const auto all =
      static_cast<std::size_t>(shared_gradients_ ? plan_.offset(Region::gradients) : plan_.total());
  kernels::clear(backend, start_ + images, all - images, {});
  if (shared_gradients_)
    kernels::clear(backend, shared_gradients_.get(), static_cast<std::size_t>(plan_.bytes(Region::gradients)),
                   {});
  kernels::synchronize(backend);
}

bool ModelMemory::is_shared(const void* address) const {
  if (!plan_.shares(Region::images)) return false;
  const auto* const at = static_cast<const std::byte*>(address);
  const std::byte* const first = base(Region::images);
  return at >= first && at < first + plan_.bytes(Region::images);
}

void ModelMemory::list_tensors(const CompiledGraph& compiled, int optimizer_states) {
  const auto& graph = compiled.graph;
  parameters_.resize(graph.parameters.size());
  std::vector<std::size_t> segment_of(parameters_.size());
  for (std::size_t i = 0; i < flat_.segments.size(); ++i)
    segment_of[static_cast<std::size_t>(flat_.parameter[i])] = i;
  // Checkpoints list the optimizer's states in this order, whichever parameters are updated early.
  for (const int number : graph.parameters_by_gradient()) {
    const auto index = static_cast<std::size_t>(number);
    const std::size_t i = segment_of[index];
    const std::int64_t offset = flat_.segments[i].offset;
    const GraphParameter& parameter = graph.parameters[index];
    const auto& desc = compiled.descs[static_cast<std::size_t>(parameter.tensor)];
    parameters_[index] = {parameter.spec.name, desc, flat_parameters() + offset};
    by_name_[parameter.spec.name] = parameters_[index].address;
    if (i < flat_.gradients) by_name_[parameter.spec.name + ".gradient"] = flat_gradients() + offset;
    if (parameter.copy >= 0)
      by_name_[parameter.spec.name + ".bf16"] = static_cast<std::uint16_t*>(flat_copy()) + offset;
    for (int state = 0; state < optimizer_states && i < flat_.trained; ++state)
      optimizer_states_.push_back({fmt::format("{}.optimizer{}", parameter.spec.name, state), desc,
                                   flat_optimizer_state(state) + offset});
  }
  std::byte* next = base(Region::statistics);
  for (const auto& [tensor, spec] : graph.states) {
    const auto& desc = compiled.descs[static_cast<std::size_t>(tensor)];
    states_.push_back({spec.name, desc, next});
    by_name_[spec.name] = next;
    next += padded(static_cast<std::int64_t>(desc.bytes()));
  }
  statistics_elements_ = (next - base(Region::statistics)) / static_cast<std::int64_t>(sizeof(float));
  if (!plan_.has(Region::averages)) return;
  for (const PersistentTensor& of : parameters_) {
    const auto at = static_cast<const float*>(of.address) - flat_parameters();
    averages_.push_back(
        {of.name + ".ema", of.desc, at < flat_.trained_elements ? flat_averages() + at : of.address});
  }
  for (const PersistentTensor& of : states_) {
    const auto at = static_cast<const float*>(of.address) - statistics();
    averages_.push_back({of.name + ".ema", of.desc, statistics_averages() + at});
  }
}

float* ModelMemory::flat_optimizer_state(int index) const {
  return reinterpret_cast<float*>(base(Region::optimizer)) + index * flat_.trained_elements;
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
    case TensorRole::optimizer_state:
    case TensorRole::state:
      return by_name_.at(tensor.name);
    case TensorRole::host:
      return host_.data() + compiled.host_offset[static_cast<std::size_t>(id)];
    case TensorRole::activation:
      return base(Region::activations) + compiled.tensor_offset[static_cast<std::size_t>(id)];
  }
  throw std::logic_error("internal error: a tensor has no known role");
}

void* ModelMemory::workspace(const CompiledGraph& compiled, std::size_t node) const {
  const std::int64_t offset = compiled.workspace_offset[node];
  return offset < 0 ? nullptr : base(Region::activations) + offset;
}

}  // namespace convoy::app

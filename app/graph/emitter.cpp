#include "app/graph/emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace convoy::app {

const GraphParameter& Emitter::find(std::string_view key) const {
  for (const GraphParameter& parameter : parameters_)
    if (parameter.spec.key == key) return parameter;
  throw std::logic_error(fmt::format("layer {} has no parameter {}", layer_, key));
}

bool Emitter::trains(std::initializer_list<std::string_view> keys) const {
  return std::ranges::any_of(keys, [&](std::string_view key) { return find(key).gradient >= 0; });
}

bool Emitter::frozen(std::initializer_list<std::string_view> keys) const {
  return std::ranges::all_of(keys, [&](std::string_view key) { return find(key).spec.frozen(); });
}

TensorId Emitter::parameter_gradient(std::string_view key) {
  const GraphParameter& found = find(key);
  if (found.gradient >= 0) return found.gradient;
  const TensorId unread = new_full_precision(fmt::format("{}.gradient", key), found.spec.shape);
  graph_.tensors[unread].same_layout_as = found.tensor;
  return unread;
}

TensorId Emitter::state(std::string_view key) const {
  for (const auto& [tensor, spec] : states_)
    if (spec.key == key) return tensor;
  throw std::logic_error(fmt::format("layer {} has no state {}", layer_, key));
}

std::uint32_t Emitter::layer_key() const { return static_cast<std::uint32_t>(hash_of(layer_)); }

TensorId Emitter::new_tensor(std::string_view suffix, const Shape& shape, kernels::DType dtype,
                             TensorId same_layout_as) {
  graph_.tensors.push_back(
      {fmt::format("{}/{}", layer_, suffix), TensorRole::activation, dtype, shape, same_layout_as});
  return static_cast<TensorId>(graph_.tensors.size()) - 1;
}

TensorId Emitter::new_full_precision(std::string_view suffix, const Shape& shape) {
  const TensorId tensor = new_tensor(suffix, shape);
  graph_.tensors[tensor].full_precision = true;
  return tensor;
}

void Emitter::append(NodeOp op, std::vector<TensorId> inputs, std::vector<TensorId> outputs, double flops) {
  graph_.nodes.push_back({layer_, std::move(op), phase_, std::move(inputs), std::move(outputs), flops});
}

void Emitter::all_reduce(TensorId tensor) {
  if (options_.ranks > 1) append(AllReduce{}, {tensor}, {tensor});
}

TensorId Emitter::output_gradient() { return output_gradients(1)[0]; }

std::vector<TensorId> Emitter::output_gradients(int at_most) {
  auto found = contributions_.find(output_);
  if (found == contributions_.end())
    throw std::runtime_error(fmt::format(
        "layer {}: found an output that no later layer uses, expected it to reach the loss", layer_));
  std::vector<TensorId> gradients = std::move(found->second);
  contributions_.erase(found);
  if (std::ssize(gradients) <= at_most) return gradients;
  // There are more gradients than `at_most`. Add up the earliest ones into one tensor. The latest
  // stay separate: they may still be in a cache, where the caller's kernel reads them.
  std::vector<TensorId> surplus(gradients.begin(), gradients.end() - (at_most - 1));
  const TensorId sum = new_tensor("gradient_sum", shape(output_), kernels::DType::f32, output_);
  append(AddForward{}, surplus, {sum});
  std::vector<TensorId> result{sum};
  result.insert(result.end(), gradients.end() - (at_most - 1), gradients.end());
  return result;
}

TensorId Emitter::new_input_gradient(int input_index) {
  const TensorId tensor = input(input_index);
  const TensorId gradient =
      new_tensor(fmt::format("input_gradient{}", input_index), shape(tensor), kernels::DType::f32, tensor);
  contribute(input_index, gradient);
  return gradient;
}

void Emitter::contribute(int input_index, TensorId gradient) {
  contributions_[input(input_index)].push_back(gradient);
}

TensorId Emitter::take_contribution(int input_index) {
  auto& gradients = contributions_[input(input_index)];
  if (gradients.empty()) return -1;
  const TensorId last = gradients.back();
  gradients.pop_back();
  return last;
}

}  // namespace convoy::app

#include "app/model/import/constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "app/model/import/constant_arithmetic.h"

namespace convoy::app::onnx_import {
namespace {

// Makes a tensor whose element i is element from(i) of `source`.
template <typename From>
Constant picked(const Constant& source, Dims dims, const From& from) {
  const std::int64_t count = elements_of(dims);
  Constant result{dims, source.is_integer, {}, nullptr, source.name, dims};
  std::vector<float> reals;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(from(i));
    if (source.is_integer)
      result.integers.push_back(source.integers[at]);
    else
      reals.push_back((*source.reals)[at]);
  }
  if (!source.is_integer) result.reals = std::make_shared<const std::vector<float>>(std::move(reals));
  return result;
}

Constant with_dims(Constant constant, Dims dims) {
  constant.dims = std::move(dims);
  return constant;
}

// Returns for each axis how many elements lie between an element and its neighbour along this axis.
Dims strides_of(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

Constant expanded(const FileNode& node, const Constant& from, const Dims& target) {
  const Dims dims = broadcast_dims(node, from.dims, target);
  computed_elements(node, dims);
  return picked(from, dims, [&](std::int64_t i) { return broadcast_index(i, dims, from.dims); });
}

Constant value_of(const FileNode& node) {
  for (const auto& [name, attribute] : node.attributes) {
    if (const auto* tensor = std::get_if<Constant>(&attribute); name == "value" && tensor != nullptr) {
      Constant constant = *tensor;
      constant.name.clear();
      return constant;
    }
    if (const auto* integer = std::get_if<std::int64_t>(&attribute);
        name == "value_int" && integer != nullptr)
      return Constant::of_integers({}, {*integer});
    if (const auto* real = std::get_if<float>(&attribute); name == "value_float" && real != nullptr)
      return Constant::of_reals({}, {*real});
    if (const auto* integers = std::get_if<Dims>(&attribute); name == "value_ints" && integers != nullptr)
      return Constant::of_integers({std::ssize(*integers)}, *integers);
    if (const auto* reals = std::get_if<std::vector<float>>(&attribute);
        name == "value_floats" && reals != nullptr)
      return Constant::of_reals({std::ssize(*reals)}, *reals);
  }
  node.fail("has no value, expected a tensor or numbers");
}

Constant constant_of_shape(const FileNode& node, const Inputs& inputs) {
  const Constant& shape = need(node, inputs, 0);
  if (!shape.is_integer) node.fail("reads a shape that is not of integers");
  computed_elements(node, shape.integers);
  const auto found = node.attributes.find("value");
  const Constant* value = found == node.attributes.end() ? nullptr : std::get_if<Constant>(&found->second);
  const Constant one = value == nullptr ? Constant::of_reals({}, {0}) : *value;
  if (one.size() != 1) node.fail("has more than one value");
  Constant result = picked(one, shape.integers, [](std::int64_t) { return 0; });
  result.name.clear();
  return result;
}

Constant gather(const FileNode& node, const Inputs& inputs) {
  const Constant &from = need(node, inputs, 0), &at = need(node, inputs, 1);
  if (!at.is_integer) node.fail("has indices that are not integers");
  const auto axis = static_cast<std::size_t>(axis_of(node, node.integer("axis", 0), std::ssize(from.dims)));
  Dims dims(from.dims.begin(), from.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.end(), at.dims.begin(), at.dims.end());
  dims.insert(dims.end(), from.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, from.dims.end());
  computed_elements(node, dims);
  const std::int64_t inner = strides_of(from.dims)[axis], extent = from.dims[axis];
  std::vector<std::int64_t> indices = at.integers;
  for (std::int64_t& index : indices) {
    if (index < 0) index += extent;
    if (index < 0 || index >= extent) node.fail(fmt::format("reads index {} of {}", index, extent));
  }
  Constant result = picked(from, dims, [&](std::int64_t i) {
    const std::int64_t outer = i / inner / at.size(), which = i / inner % at.size();
    return (outer * extent + indices[static_cast<std::size_t>(which)]) * inner + i % inner;
  });
  result.name.clear();
  return result;
}

std::optional<Constant> concat(const FileNode& node, const Inputs& inputs) {
  const Constant& first = need(node, inputs, 0);
  if (first.dims.size() != 1) return std::nullopt;
  Constant result{{0}, first.is_integer, {}, nullptr, {}, {}};
  std::vector<float> reals;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Constant& part = need(node, inputs, i);
    if (part.dims.size() != 1 || part.is_integer != first.is_integer)
      node.fail("joins constants of different kinds");
    result.dims[0] += part.dims[0];
    computed_elements(node, result.dims);
    result.integers.insert(result.integers.end(), part.integers.begin(), part.integers.end());
    if (!part.is_integer) reals.insert(reals.end(), part.reals->begin(), part.reals->end());
  }
  if (!first.is_integer) result.reals = std::make_shared<const std::vector<float>>(std::move(reals));
  return result;
}

// Takes every `step`-th index of one axis, from `start` until before `end`. A negative `start` or
// `end` counts from the end of the axis.
Constant sliced(const FileNode& node, const Constant& from, std::int64_t axis, std::int64_t start,
                std::int64_t end, std::int64_t step) {
  if (step == 0) node.fail("has a step of zero");
  const auto place = static_cast<std::size_t>(axis_of(node, axis, std::ssize(from.dims)));
  const std::int64_t extent = from.dims[place], inner = strides_of(from.dims)[place];
  const auto clamped = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + extent : at, step > 0 ? 0 : -1,
                                    step > 0 ? extent : extent - 1);
  };
  std::vector<std::int64_t> chosen;
  const std::int64_t stride = std::clamp<std::int64_t>(step, -extent - 1, extent + 1), last = clamped(end);
  for (std::int64_t i = clamped(start); stride > 0 ? i < last : i > last; i += stride) chosen.push_back(i);
  Dims dims = from.dims;
  dims[place] = std::ssize(chosen);
  Constant result = picked(from, dims, [&](std::int64_t i) {
    const std::int64_t outer = i / inner / dims[place], which = i / inner % dims[place];
    return (outer * extent + chosen[static_cast<std::size_t>(which)]) * inner + i % inner;
  });
  result.name.clear();
  return result;
}

std::optional<Constant> slice(const FileNode& node, const Inputs& inputs) {
  const auto numbers = [&](std::size_t input, const char* attribute) -> std::optional<Dims> {
    const Constant* given = input < inputs.size() ? inputs[input] : nullptr;
    if (given != nullptr && !given->is_integer) node.fail("has bounds that are not integers");
    return given != nullptr ? std::optional(given->integers) : node.integers(attribute);
  };
  Constant result = need(node, inputs, 0);
  const Dims starts = numbers(1, "starts").value_or(Dims{}), ends = numbers(2, "ends").value_or(Dims{});
  Dims all(starts.size());
  std::iota(all.begin(), all.end(), 0);
  const Dims axes = numbers(3, "axes").value_or(all),
             steps = numbers(4, "steps").value_or(Dims(starts.size(), 1));
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    node.fail("has starts, ends, axes and steps that do not belong together");
  for (std::size_t i = 0; i < starts.size(); ++i)
    result = sliced(node, result, axes[i], starts[i], ends[i], steps[i]);
  return result;
}

Constant range(const FileNode& node, const Inputs& inputs) {
  const Constant &start = need(node, inputs, 0), &limit = need(node, inputs, 1),
                 &step = need(node, inputs, 2);
  for (const Constant* number : {&start, &limit, &step})
    if (!number->is_integer || number->size() != 1) node.fail("expected three integers");
  const double count = std::ceil((limit.at(0) - start.at(0)) / step.at(0));
  if (!(count < 65536)) node.fail("makes too long a range");
  std::vector<std::int64_t> values;
  auto value = static_cast<std::uint64_t>(start.integers[0]);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count);
       ++i, value += static_cast<std::uint64_t>(step.integers[0]))
    values.push_back(static_cast<std::int64_t>(value));
  return Constant::of_integers({std::ssize(values)}, values);
}

Constant reduce_prod(const FileNode& node, const Inputs& inputs) {
  const Constant& from = need(node, inputs, 0);
  if (!from.is_integer || from.dims.size() > 1) node.fail("expected a vector of integers");
  std::uint64_t product = 1;
  for (const std::int64_t value : from.integers) product *= static_cast<std::uint64_t>(value);
  return Constant::of_integers(node.integer("keepdims", 1) != 0 ? Dims{1} : Dims{},
                               {static_cast<std::int64_t>(product)});
}

Constant transpose(const FileNode& node, const Inputs& inputs) {
  const Constant& from = need(node, inputs, 0);
  Dims order(from.dims.size());
  std::iota(order.rbegin(), order.rend(), 0);
  order = node.integers("perm").value_or(order);
  Dims sorted = order;
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<std::int64_t>(i) || sorted.size() != from.dims.size())
      node.fail("has a wrong order of axes");
  if (order.size() != from.dims.size()) node.fail("has a wrong order of axes");
  return transposed(from, order);
}

Dims target_of(const FileNode& node, const Inputs& inputs) {
  const Constant& target = need(node, inputs, 1);
  if (!target.is_integer) node.fail("reads a shape that is not of integers");
  return target.integers;
}

using Evaluator = std::function<std::optional<Constant>(const FileNode&, const Inputs&)>;

const std::map<std::string, Evaluator>& evaluators() {
  static const std::map<std::string, Evaluator> table = [] {
    std::map<std::string, Evaluator> all{
        {"Constant", [](const FileNode& node, const Inputs&) { return value_of(node); }},
        {"ConstantOfShape", constant_of_shape},
        {"Cast", cast},
        {"CastLike", [](const FileNode& node, const Inputs& in) { return need(node, in, 0); }},
        {"Concat", concat},
        {"Gather", gather},
        {"Range", range},
        {"ReduceProd", reduce_prod},
        {"Slice", slice},
        {"Transpose", transpose},
        {"Where", where},
        {"Shape",
         [](const FileNode& node, const Inputs& in) {
           const Dims dims = need(node, in, 0).dims;
           return Constant::of_integers({std::ssize(dims)}, dims);
         }},
        {"Size", [](const FileNode& node,
                    const Inputs& in) { return Constant::of_integers({}, {need(node, in, 0).size()}); }},
        {"Expand", [](const FileNode& node,
                      const Inputs& in) { return expanded(node, need(node, in, 0), target_of(node, in)); }},
        {"Reshape",
         [](const FileNode& node, const Inputs& in) {
           const Constant& from = need(node, in, 0);
           return with_dims(from, reshaped_dims(node, from.dims, target_of(node, in)));
         }},
        {"Unsqueeze",
         [](const FileNode& node, const Inputs& in) {
           const Constant& from = need(node, in, 0);
           return with_dims(from, unsqueezed_dims(node, from.dims, in.size() > 1 ? in[1] : nullptr));
         }},
        {"Squeeze",
         [](const FileNode& node, const Inputs& in) {
           const Constant& from = need(node, in, 0);
           return with_dims(from, squeezed_dims(node, from.dims, in.size() > 1 ? in[1] : nullptr, 0));
         }},
        // Exporters store parameters with equal values only once, and add an Identity node for
        // every further parameter. The copy is named after the node's output, so it is a separate
        // parameter again.
        {"Identity", [](const FileNode& node, const Inputs& in) {
           Constant copy = need(node, in, 0);
           if (!copy.name.empty()) copy.name = node.outputs.at(0);
           return copy;
         }}};
    for (const char* op :
         {"Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Pow", "Equal", "Greater", "Less"})
      all[op] = binary;
    for (const char* op : {"Neg", "Sqrt", "Floor", "Ceil"}) all[op] = unary;
    return all;
  }();
  return table;
}

}  // namespace

std::optional<Constant> evaluate(const FileNode& node, const std::vector<const Constant*>& inputs) {
  const auto found = node.domain.empty() ? evaluators().find(node.op) : evaluators().end();
  return found == evaluators().end() ? std::nullopt : found->second(node, inputs);
}

Constant transposed(const Constant& from, const Dims& order) {
  Dims dims;
  for (const std::int64_t axis : order) dims.push_back(from.dims[static_cast<std::size_t>(axis)]);
  const Dims strides = strides_of(from.dims);
  return picked(from, dims, [&](std::int64_t i) {
    std::int64_t index = 0;
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      index += i % dims[axis] * strides[static_cast<std::size_t>(order[axis])];
      i /= dims[axis];
    }
    return index;
  });
}

}  // namespace convoy::app::onnx_import

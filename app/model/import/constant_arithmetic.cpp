#include "app/model/import/constant_arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace convoy::app::onnx_import {
namespace {

// The largest number of elements of a computed constant. Computed constants are mostly shapes,
// which have only a few elements.
constexpr std::int64_t kMostComputed = 1 << 16;

// Integers wrap around on overflow. They are computed as unsigned, because signed overflow is
// undefined in C++.
std::int64_t integer_result(const FileNode& node, std::int64_t a, std::int64_t b) {
  const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  const std::string& op = node.op;
  if (op == "Add") return static_cast<std::int64_t>(ua + ub);
  if (op == "Sub") return static_cast<std::int64_t>(ua - ub);
  if (op == "Mul") return static_cast<std::int64_t>(ua * ub);
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  if (op == "Equal") return a == b ? 1 : 0;
  if (op == "Greater") return a > b ? 1 : 0;
  if (op == "Less") return a < b ? 1 : 0;
  if (b == 0 || b == -1) {
    if (b == 0) node.fail("divides by zero");
    return op == "Mod" ? 0 : static_cast<std::int64_t>(0 - ua);
  }
  if (op == "Div") return a / b;
  // In ONNX the result of Mod has the sign of the divisor. In C++ it has the sign of the dividend.
  return a % b != 0 && (a < 0) != (b < 0) ? a % b + b : a % b;
}

float real_result(const std::string& op, float a, float b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  return std::pow(a, b);
}

std::int64_t to_integer(float value) {
  constexpr float kMost = 9e18f;
  return std::isnan(value) ? 0 : static_cast<std::int64_t>(std::clamp(value, -kMost, kMost));
}

}  // namespace

const Constant& need(const FileNode& node, const Inputs& inputs, std::size_t index) {
  if (index >= inputs.size() || inputs[index] == nullptr) node.fail(fmt::format("lacks its input {}", index));
  return *inputs[index];
}

std::int64_t computed_elements(const FileNode& node, const Dims& dims) {
  const std::int64_t count = elements_of(dims);
  if (count > kMostComputed)
    node.fail(
        fmt::format("makes a constant of {}, expected at most {} elements", to_string(dims), kMostComputed));
  return count;
}

Dims broadcast_dims(const FileNode& node, const Dims& a, const Dims& b) {
  Dims dims(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto extent = [&](const Dims& of) {
      return i < dims.size() - of.size() ? 1 : of[i - (dims.size() - of.size())];
    };
    const std::int64_t x = extent(a), y = extent(b);
    if (x != y && x != 1 && y != 1)
      node.fail(fmt::format("combines the shapes {} and {}", to_string(a), to_string(b)));
    dims[i] = x == 1 ? y : x;
  }
  return dims;
}

std::int64_t broadcast_index(std::int64_t i, const Dims& to, const Dims& of) {
  std::int64_t index = 0, stride = 1;
  for (std::size_t axis = to.size(), left = of.size(); axis-- > 0;) {
    const std::int64_t at = i % to[axis];
    i /= to[axis];
    if (left == 0) continue;
    if (of[--left] > 1) index += at * stride;
    stride *= of[left];
  }
  return index;
}

std::optional<Constant> binary(const FileNode& node, const Inputs& inputs) {
  const Constant &a = need(node, inputs, 0), &b = need(node, inputs, 1);
  if (inputs.size() != 2 || a.is_integer != b.is_integer) return std::nullopt;
  // Do not compute with weights, because the network would then have the result in place of the
  // weights themselves.
  if (!a.is_integer && ((!a.name.empty() && a.size() > 1) || (!b.name.empty() && b.size() > 1)))
    return std::nullopt;
  const bool for_integers = node.op != "Pow",
             for_reals = node.op != "Mod" && node.op != "Equal" && node.op != "Greater" && node.op != "Less";
  if (a.is_integer ? !for_integers : !for_reals) return std::nullopt;
  const Dims dims = broadcast_dims(node, a.dims, b.dims);
  std::vector<std::int64_t> integers;
  std::vector<float> reals;
  for (std::int64_t i = 0, count = computed_elements(node, dims); i < count; ++i) {
    const auto x = static_cast<std::size_t>(broadcast_index(i, dims, a.dims));
    const auto y = static_cast<std::size_t>(broadcast_index(i, dims, b.dims));
    if (a.is_integer)
      integers.push_back(integer_result(node, a.integers[x], b.integers[y]));
    else
      reals.push_back(real_result(node.op, (*a.reals)[x], (*b.reals)[y]));
  }
  return a.is_integer ? Constant::of_integers(dims, integers) : Constant::of_reals(dims, reals);
}

std::optional<Constant> unary(const FileNode& node, const Inputs& inputs) {
  Constant result = need(node, inputs, 0);
  if (!result.is_integer && !result.name.empty() && result.size() > 1) return std::nullopt;
  if (result.is_integer) {
    if (node.op != "Neg") return std::nullopt;
    for (std::int64_t& value : result.integers)
      value = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(value));
    return result;
  }
  std::vector<float> values = *result.reals;
  for (float& value : values)
    value = node.op == "Neg"     ? -value
            : node.op == "Sqrt"  ? std::sqrt(value)
            : node.op == "Floor" ? std::floor(value)
                                 : std::ceil(value);
  return Constant::of_reals(result.dims, std::move(values));
}

std::optional<Constant> cast(const FileNode& node, const Inputs& inputs) {
  // These are values of ONNX's TensorProto::DataType.
  constexpr std::int64_t kFloat = 1, kHalf = 10, kDouble = 11, kBfloat = 16;
  const Constant& from = need(node, inputs, 0);
  const std::int64_t to = node.integer("to", kFloat);
  const bool to_real = to == kFloat || to == kHalf || to == kDouble || to == kBfloat;
  if (to_real != from.is_integer) return from;
  if (!to_real && !from.name.empty() && from.size() > 1) return std::nullopt;
  std::vector<std::int64_t> integers;
  std::vector<float> reals;
  for (std::int64_t i = 0; i < from.size(); ++i)
    if (to_real)
      reals.push_back(static_cast<float>(from.at(i)));
    else
      integers.push_back(to_integer((*from.reals)[static_cast<std::size_t>(i)]));
  return to_real ? Constant::of_reals(from.dims, reals) : Constant::of_integers(from.dims, integers);
}

std::optional<Constant> where(const FileNode& node, const Inputs& inputs) {
  const Constant &condition = need(node, inputs, 0), &yes = need(node, inputs, 1),
                 &no = need(node, inputs, 2);
  if (!condition.is_integer || !yes.is_integer || !no.is_integer) return std::nullopt;
  const Dims dims = broadcast_dims(node, broadcast_dims(node, condition.dims, yes.dims), no.dims);
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0, count = computed_elements(node, dims); i < count; ++i) {
    const Constant& from =
        condition.integers[static_cast<std::size_t>(broadcast_index(i, dims, condition.dims))] != 0 ? yes
                                                                                                    : no;
    values.push_back(from.integers[static_cast<std::size_t>(broadcast_index(i, dims, from.dims))]);
  }
  return Constant::of_integers(dims, values);
}

}  // namespace convoy::app::onnx_import

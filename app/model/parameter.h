// Describes the parameters and running statistics of a layer, which it keeps between steps, and how
// their initial values are made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/tensor.h"

namespace convoy::app {

struct Initializer {
  enum class Kind : std::uint8_t { constant, normal, uniform };
  Kind kind = Kind::constant;
  // Depends on the kind: the constant, the standard deviation of a normal distribution, or the
  // bound a of the interval from -a to a.
  double value = 0;

  static Initializer constant(double value) { return {Kind::constant, value}; }
  static Initializer normal(double deviation) { return {Kind::normal, deviation}; }
  static Initializer uniform(double half_width) { return {Kind::uniform, half_width}; }
  // Returns a normal initializer with variance 2 / fan, for layers before a ReLU (He et al. 2015).
  static Initializer he_normal(double fan);
};

struct ParameterSpec {
  std::string name;  // for example "weight" in a layer, "conv1.weight" in a network
  kernels::Shape shape;
  Initializer initializer;
  bool decay = false;  // whether weight decay and LARS scaling apply
  // Factor on the learning rate. 0 means frozen: the parameter has no gradient.
  float rate = 1;
  // Factor on the learning rate that depends on the network's width (training/parametrisation.h).
  // Weight decay is divided by it, so the product of learning rate and weight decay stays the same.
  float width_rate = 1;
  // The name within the layer. `name` is "layer.key", unless a model file uses another name.
  std::string key = {};
  // The shape in model files; empty if it is `shape`. Both shapes have the same elements in the
  // same order.
  kernels::Shape file_shape = {};
  // The initial values from a model file in row-major order; null if the initializer draws them.
  std::shared_ptr<const std::vector<float>> values = nullptr;
  // Whether the model file has a constant here and no parameter, as a norm of PyTorch's with
  // affine=False has. A constant has no gradient, and files of weights do not hold it. `rate` only
  // says whether its batch norm is frozen.
  bool constant = false;

  const kernels::Shape& shape_in_files() const { return file_shape.rank() > 0 ? file_shape : shape; }
  bool frozen() const { return rate == 0; }
  bool trained() const { return !constant && !frozen(); }
  // Returns the number of elements that count as parameters of the network.
  std::int64_t parameter_count() const { return constant ? 0 : shape.elements(); }
};

// Returns the FNV-1a hash. std::hash is not used because it may differ between standard libraries.
std::uint64_t hash_of(std::string_view text);

// Says what is wrong with values for a parameter or a statistic: numbers that are not finite, or
// negative variances. Returns an empty text if nothing is wrong.
std::string fault_in(const ParameterSpec& spec, const std::vector<float>& values);

// Fills `values` in row-major order with spec.values, or with drawn numbers if spec.values is null.
// A drawn number depends only on the seed, the parameter's name and the element's index, so it is
// the same on every rank and backend.
void initialize(const ParameterSpec& spec, std::uint64_t seed, float* values);

}  // namespace convoy::app

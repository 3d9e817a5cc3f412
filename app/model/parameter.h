// Parameters and running statistics: what a layer owns between steps, and how it begins.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/device/tensor.h"

namespace convoy::app {

struct Initializer {
  enum class Kind : std::uint8_t { constant, normal, uniform };
  Kind kind = Kind::constant;
  double value = 0;  // the constant; the standard deviation; the half-width of the interval around zero

  static Initializer constant(double value) { return {Kind::constant, value}; }
  static Initializer normal(double deviation) { return {Kind::normal, deviation}; }
  static Initializer uniform(double half_width) { return {Kind::uniform, half_width}; }
  // He et al. 2015, for ReLU: normal with variance 2 / fan.
  static Initializer he_normal(double fan);
};

struct ParameterSpec {
  std::string
      name;  // within the layer ("weight"); the whole name once it belongs to a network ("conv1.weight")
  kernels::Shape shape;
  Initializer initializer;
  bool decay = false;  // weight decay and LARS scaling apply: weights of convolutions and linear layers
};

// FNV-1a, the same everywhere (std::hash may differ between standard libraries).
std::uint64_t hash_of(std::string_view text);

// Fills `values` (row-major). Every element depends on (seed, name, its index) alone: the same on every rank and backend.
void initialize(const ParameterSpec& spec, std::uint64_t seed, float* values);

}  // namespace convoy::app

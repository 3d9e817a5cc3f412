#include "app/training/parametrisation.h"

#include <cmath>
#include <map>
#include <string>

#include "app/model/network.h"
#include "app/model/zoo/zoo.h"

namespace convoy::app {
namespace {

constexpr std::int64_t kMostWidth = 1000;  // the largest width that a built-in network may have

// Finds how parameters depend on the width by comparing the network with one whose width differs by
// 1. A network of the base width would not do, because it may lack layers, such as the convolution
// in a shortcut.
class Widths {
 public:
  Widths(const Network& network, std::int64_t base_width)
      : width_(width_of(network.name())),
        growth_(static_cast<double>(width_) / static_cast<double>(base_width)),
        other_width_(width_ < kMostWidth ? width_ + 1 : width_ - 1) {
    const Network other = make_network(with_width(network.name(), other_width_), network.shape(0),
                                       static_cast<int>(network.shape(network.outputs()[0])[1]));
    for (const ParameterSpec& spec : other.parameters()) others_.emplace(spec.name, spec);
  }

  // Returns by which factor the axis is longer than in the network of the base width.
  double growth(const ParameterSpec& spec, int axis) const {
    return axis < spec.shape.rank() && spec.shape[axis] != others_.at(spec.name).shape[axis] ? growth_ : 1;
  }
  // Returns the value of the initializer in the network of the base width. The value is
  // proportional to a power of the width; the exponent follows from the values at two widths.
  double base_value(const ParameterSpec& spec) const {
    const double value = spec.initializer.value, other = others_.at(spec.name).initializer.value;
    if (value == other) return value;
    const double power =
        std::log(other / value) / std::log(static_cast<double>(other_width_) / static_cast<double>(width_));
    return value * std::pow(growth_, -power);
  }

 private:
  std::int64_t width_;
  double growth_;
  std::int64_t other_width_;
  std::map<std::string, ParameterSpec> others_;
};

}  // namespace

void parametrise_by_width(Network& network, std::int64_t base_width, kernels::OptimizerKind optimizer) {
  const Widths widths(network, base_width);
  for (LayerId id = 0; id < std::ssize(network.layers()); ++id)
    for (const ParameterSpec& spec : network.layers()[static_cast<std::size_t>(id)].parameters) {
      const double out = widths.growth(spec, 0), in = widths.growth(spec, 1);
      ParameterSpec& changed = network.parameter(id, spec.key);
      if (spec.initializer.kind != Initializer::Kind::constant)
        changed.initializer.value = widths.base_value(spec) / (out == 1 ? in : std::sqrt(in));
      changed.width_rate = static_cast<float>((optimizer == kernels::OptimizerKind::adamw ? 1 : out) / in);
    }
}

}  // namespace convoy::app

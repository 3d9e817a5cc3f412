// The members that every layer type provides. A layer is a struct of attributes. It has no base
// class: op_table.h lists the types in a variant, and a missing member is a compile error:
//
//   static constexpr std::string_view kKind;                        // "conv2d"
//   using Nodes = std::tuple<Conv2dForward, ...>;                   // operations that it appends
//   Shape infer(Shapes inputs) const;                               // output; throws ShapeError
//   std::vector<ParameterSpec> parameters(Shapes inputs) const;     // trained
//   std::vector<ParameterSpec> states(Shapes inputs) const;         // kept, not trained
//   double flops(Shapes inputs) const;    // of one forward pass; a multiply-add counts as two
//   std::string attributes() const;       // for tables: "3x3, stride 2"
//   void forward(Emitter&) const;         // appends the forward nodes (app/graph/ops)
//   void backward(Emitter&) const;        // appends the backward nodes (app/graph/ops)
#pragma once

#include <array>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "app/model/node.h"
#include "app/model/parameter.h"
#include "kernels/device/tensor.h"

namespace convoy::app {

class Emitter;  // app/graph/emitter.h

using kernels::Shape;
using Shapes = std::span<const Shape>;

// Says how a layer's inputs or attributes are wrong. The network puts the layer's name in front.
struct ShapeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Both throw ShapeError: unless there are `count` inputs, and unless `shape` is [N, C, H, W].
void expect_inputs(Shapes inputs, std::size_t count);
void expect_image(const Shape& shape);

// Returns "3" for {3, 3}, and "3x1" for {3, 1}.
std::string extents(const std::array<int, 2>& height_and_width);

// Returns whether `shape` has one value for each sample and channel of the images `of`.
bool is_gate(const Shape& shape, const Shape& of);

}  // namespace convoy::app

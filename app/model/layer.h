// What every layer type provides. A layer is a struct of attributes with these members (no base class: the op table in
// op_table.h lists the types in a variant, and a missing member is a compile error):
//
//   static constexpr std::string_view kKind;                              // "conv2d"
//   Shape infer(Shapes inputs) const;                                     // output shape; throws ShapeError
//   std::vector<ParameterSpec> parameters(Shapes inputs) const;           // trained
//   std::vector<ParameterSpec> states(Shapes inputs) const;               // kept, not trained
//   double flops(Shapes inputs) const;                                    // of one forward pass, a multiply-add is two
//   void forward(Emitter&) const;                                         // appends the forward nodes
//   void backward(Emitter&) const;                                        // appends the backward nodes
//   std::string attributes() const;                                       // for tables: "3x3 stride 2"
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/model/parameter.h"
#include "kernels/device/tensor.h"

namespace convoy::app {

using kernels::Shape;
using Shapes = std::span<const Shape>;

// Says what is wrong with a layer's inputs or attributes; the network puts the layer's name in front.
struct ShapeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void expect_inputs(Shapes inputs, std::size_t count);
void expect_image(const Shape& shape);  // [N, C, H, W]

}  // namespace convoy::app

// Lists the members that every layer type has. A layer is a struct of attributes. It has no base
// class: op_table.h lists all types in a variant, and a missing member is a compile error:
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
//   void write(LayerWriter&) const;       // appends the nodes of an ONNX graph (app/graph/ops)
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

class Emitter;  // defined in app/graph/emitter.h
namespace onnx_export {
class LayerWriter;  // defined in app/model/export/layer_writer.h
}
using onnx_export::LayerWriter;

using kernels::Shape;
using Shapes = std::span<const Shape>;

// Says what is wrong with a layer's inputs or attributes. Network::add() puts the layer's name
// before the message.
struct ShapeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws ShapeError unless there are `count` inputs.
void expect_inputs(Shapes inputs, std::size_t count);
// Throws ShapeError unless `shape` has the form [N, C, H, W].
void expect_image(const Shape& shape);

// Returns, for example, "3" for {3, 3} and "3x1" for {3, 1}.
std::string extents(const std::array<int, 2>& height_and_width);

// Returns whether `shape` is [N, C, 1, 1] and `of` is [N, C, H, W], with the same N and C.
bool is_gate(const Shape& shape, const Shape& of);

}  // namespace convoy::app

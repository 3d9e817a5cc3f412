// Imports sums and products of tensors, and arithmetic of a tensor and a constant.
#include <fmt/format.h>

#include <cmath>

#include "app/model/import/operations.h"

namespace convoy::app::onnx_import {
namespace {

// Takes a node with two inputs, of which input `which` is the constant `number`. Returns the
// function slope x + offset that the node computes of its other input x.
kernels::ActivationProblem affine_of(const FileNode& node, std::size_t which, double number) {
  double slope = 1, offset = 0;
  if (node.op == "Mul") {
    slope = number;
  } else if (node.op == "Div") {
    if (which == 0) node.fail("divides a constant, which is not supported");
    slope = 1 / number;
  } else {
    offset = node.op == "Sub" && which == 1 ? -number : number;
    if (node.op == "Sub" && which == 0) slope = -1;
  }
  const kernels::ActivationProblem affine{.kind = kernels::ActivationKind::affine,
                                          .slope = static_cast<float>(slope),
                                          .offset = static_cast<float>(offset)};
  if (!std::isfinite(affine.slope) || !std::isfinite(affine.offset))
    node.fail(fmt::format("has the constant {}, which gives results that are not finite", number));
  return affine;
}

// Imports a node with two inputs, of which input `which` is a constant. The constant is a number or
// has one value per channel. A constant with one value per channel becomes the parameter of a layer
// Bias or Scale, and is allowed only for Add and Mul.
void give_with_constant(Importer& importer, const FileNode& node, std::size_t which) {
  const Constant constant = importer.constant(node, which);
  FileNode turned = node;
  std::swap(turned.inputs[0], turned.inputs[1 - which]);
  const Value input = importer.activation(turned, 0);
  const bool is_weight = (node.op == "Add" || node.op == "Mul") && !constant.name.empty() &&
                         !is_computed_number(constant) &&
                         is_per_channel(constant, input.dims(), input.view.place_of(1)) &&
                         input.view.place_of(1) >= 0 && constant.size() == input.view.layer()[1];
  if (constant.size() == 1 && constant.dims.size() <= input.dims().size() && !is_weight) {
    const kernels::ActivationProblem affine = affine_of(node, which, constant.at(0));
    if (!is_computed_number(constant))
      importer.note(fmt::format("{} is one number for all channels: it stays {:g} and is not trained",
                                constant.name, constant.at(0)));
    if (affine.slope == 1 && affine.offset == 0) return importer.give(node, input);
    importer.give_elementwise(turned, Activation{affine});
    return;
  }
  if (!is_weight)
    node.fail(
        fmt::format("has a constant of the shape {} with an image of {}; expected a number, or for Add "
                    "and Mul an initialiser with one value for each channel. Normalisation of the "
                    "images is the data set's: leave it out of the network",
                    to_string(constant.dims), to_string(input.dims())));
  const bool is_sum = node.op == "Add";
  const LayerId layer = is_sum ? importer.give_elementwise(turned, Bias{})
                               : importer.give_elementwise(turned, Scale{}, &constant);
  importer.bind(node, layer, is_sum ? "bias" : "weight", constant);
}

// Returns whether `gate` has one value per channel of `image`, with the axes in the same order.
bool is_gate_of(const Value& gate, const Value& image) {
  const Dims &layer = gate.view.layer(), &other = image.view.layer();
  return layer.size() == 4 && other.size() == 4 && layer[2] * layer[3] == 1 && layer[1] == other[1] &&
         gate.view.has_order_of(image.view);
}

// Returns whether a value [N, C, 1, 1] has a global pool before it, with only layers of one input
// between. Such a value has one pixel whatever the size of the images.
bool is_pooled(const Importer& importer, LayerId layer) {
  for (LayerId at = layer; at > 0;) {
    const Layer& maker = importer.layers()[static_cast<std::size_t>(at)];
    const auto* pool = std::get_if<Pool>(&maker.op);
    if (pool != nullptr && pool->window[0] == 0) return true;
    if (maker.inputs.size() != 1) return false;
    at = maker.inputs[0];
  }
  return false;
}

// Returns whether `gate` must be the second term. If the images are so small that both terms are
// [N, C, 1, 1], the gate is the one after a global pool. So the order of the terms, on which the
// bits depend, is the same for all sizes of images.
bool comes_second(const Importer& importer, const Value& gate, const Value& image) {
  if (!is_gate_of(gate, image)) return false;
  return gate.view != image.view || (is_pooled(importer, gate.layer) && !is_pooled(importer, image.layer));
}

void give_combined(Importer& importer, const FileNode& node, bool is_sum) {
  std::vector<Value> terms;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) terms.push_back(importer.activation(node, i));
  if (terms.size() == 2 && comes_second(importer, terms[0], terms[1])) std::swap(terms[0], terms[1]);
  std::vector<LayerId> layers;
  for (const Value& term : terms) {
    const bool same = term.view == terms[0].view;
    if (!same && !(terms.size() == 2 && is_gate_of(term, terms[0])))
      node.fail(fmt::format(
          "combines values of the shapes {} and {}; expected equal ones or one value for each channel",
          to_string(terms[0].dims()), to_string(term.dims())));
    layers.push_back(term.layer);
  }
  const LayerId layer = is_sum ? importer.add(node, Add{}, layers) : importer.add(node, Multiply{}, layers);
  importer.give(node, {std::nullopt, layer, terms[0].view});
}

void import_arithmetic(Importer& importer, const FileNode& node) {
  if (node.inputs.size() == 2)
    for (const std::size_t which : {0u, 1u})
      if (importer.is_constant(node, which)) return give_with_constant(importer, node, which);
  if (node.op == "Sub" || node.op == "Div" || node.inputs.size() < 2 ||
      (node.op == "Mul" && node.inputs.size() != 2))
    node.fail("is supported for a constant only");
  give_combined(importer, node, node.op != "Mul");
}

void import_neg(Importer& importer, const FileNode& node) {
  importer.give_elementwise(node,
                            Activation{{.kind = kernels::ActivationKind::affine, .slope = -1, .offset = 0}});
}

}  // namespace

const Operations& arithmetic_operations() {
  static const Operations table{
      {"Add", import_arithmetic, {}}, {"Div", import_arithmetic, {}}, {"Mul", import_arithmetic, {}},
      {"Neg", import_neg, {}},        {"Sub", import_arithmetic, {}}, {"Sum", import_arithmetic, {}},
  };
  return table;
}

}  // namespace convoy::app::onnx_import

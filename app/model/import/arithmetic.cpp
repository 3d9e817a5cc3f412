// Imports sums and products of tensors, and of a tensor and a constant.
#include <fmt/format.h>

#include "app/model/import/operations.h"

namespace convoy::app::onnx_import {
namespace {

// Imports a sum or a product of a tensor and a constant, which is input `which`. The constant must
// be `neutral` (0 or 1), so that nothing changes, or a weight with one value per channel.
void give_with_constant(Importer& importer, const FileNode& node, std::size_t which, double neutral) {
  const Constant constant = importer.constant(node, which);
  const bool is_sum = neutral == 0;
  FileNode turned = node;
  std::swap(turned.inputs[0], turned.inputs[1 - which]);
  const Value input = importer.activation(turned, 0);
  const bool is_weight = !constant.name.empty() &&
                         is_per_channel(constant, input.dims(), input.view.place_of(1)) &&
                         input.view.place_of(1) >= 0 && constant.size() == input.view.layer()[1];
  if (constant.size() == 1 && constant.at(0) == neutral && !is_weight) return importer.give(node, input);
  if (!is_weight || (node.op != "Add" && node.op != "Mul"))
    node.fail(fmt::format(
        "has a constant of the shape {} with an image of {}; expected an initialiser with one value for each "
        "channel. Normalisation of the images is the data set's: leave it out of the network",
        to_string(constant.dims), to_string(input.dims())));
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

void give_combined(Importer& importer, const FileNode& node, bool is_sum) {
  std::vector<Value> terms;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) terms.push_back(importer.activation(node, i));
  if (terms.size() == 2 && terms[0].view != terms[1].view && is_gate_of(terms[0], terms[1]))
    std::swap(terms[0], terms[1]);
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

void import_arithmetic(Importer& importer, const FileNode& node, double neutral) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs.size() == 2 && importer.is_constant(node, i))
      return give_with_constant(importer, node, i, neutral);
  if (node.op == "Sub" || node.op == "Div" || node.inputs.size() < 2 ||
      (node.op == "Mul" && node.inputs.size() != 2))
    node.fail("is supported for a constant only");
  give_combined(importer, node, neutral == 0);
}

}  // namespace

void import_add(Importer& importer, const FileNode& node) { import_arithmetic(importer, node, 0); }
void import_sub(Importer& importer, const FileNode& node) {
  if (importer.is_constant(node, 0)) node.fail("subtracts from a constant, which is not supported");
  import_arithmetic(importer, node, 0);
}
void import_mul(Importer& importer, const FileNode& node) { import_arithmetic(importer, node, 1); }
void import_div(Importer& importer, const FileNode& node) {
  if (importer.is_constant(node, 0)) node.fail("divides a constant, which is not supported");
  import_arithmetic(importer, node, 1);
}

}  // namespace convoy::app::onnx_import

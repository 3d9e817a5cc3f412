#include "app/model/import/structure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace convoy::app::onnx_import {
namespace {

std::string text_of(const Constant& constant) {
  std::string text = to_string(constant.dims);
  if (constant.is_integer) return fmt::format("{} [{}]", text, fmt::join(constant.integers, " "));
  return constant.size() == 1 ? fmt::format("{} {}", text, constant.at(0)) : text;
}

std::string text_of(const Attribute& attribute) {
  return std::visit(
      [](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Constant>)
          return text_of(value);
        else if constexpr (std::is_same_v<T, std::monostate>)
          return "graph";
        else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>)
          return fmt::format("{}", value);
        else
          return fmt::format("[{}]", fmt::join(value, " "));
      },
      attribute);
}

}  // namespace

std::string structure_of(const FileGraph& graph) {
  std::string text = fmt::format("opset {}\n", graph.opset);
  for (const FileInput& input : graph.inputs)
    text += fmt::format("input {} {}\n", input.name, to_string(input.dims));
  for (const auto& [name, initialiser] : graph.initialisers)
    text += fmt::format("constant {} {}\n", name, text_of(initialiser));
  for (const FileNode& node : graph.nodes) {
    text += fmt::format("{} {}.{} {} -> {}", node.name, node.domain, node.op, fmt::join(node.inputs, " "),
                        fmt::join(node.outputs, " "));
    for (const auto& [name, value] : node.attributes) text += fmt::format(" {}={}", name, text_of(value));
    text += '\n';
  }
  return text + fmt::format("outputs {}\n", fmt::join(graph.outputs, " "));
}

}  // namespace convoy::app::onnx_import

#include "app/model/import/patterns.h"

#include <algorithm>
#include <set>

#include "app/model/import/pattern_graph.h"

namespace convoy::app::onnx_import {
namespace {

void remove_unused(FileGraph& graph) {
  std::set<std::string> needed(graph.outputs.begin(), graph.outputs.end());
  std::vector<FileNode> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (std::ranges::none_of(node->outputs,
                             [&](const std::string& output) { return needed.contains(output); }))
      continue;
    needed.insert(node->inputs.begin(), node->inputs.end());
    kept.push_back(std::move(*node));
  }
  std::ranges::reverse(kept);
  graph.nodes = std::move(kept);
}

}  // namespace

void recognise_patterns(FileGraph& graph) {
  const PatternGraph patterns(graph);
  for (FileNode& node : graph.nodes) {
    Match found = match_activation(patterns, node);
    if (!found) found = match_norm(patterns, node);
    if (!found) continue;
    found->name = node.name, found->outputs = node.outputs, found->index = node.index;
    node = std::move(*found);
  }
  remove_unused(graph);
}

}  // namespace convoy::app::onnx_import

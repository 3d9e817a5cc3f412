// Writes task graphs as JSON in Convoy's format.
#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "partition/graph/task_graph_json.h"

namespace convoy::partition {

namespace {

std::string json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string times(const TaskGraph& graph, NodeIndex node) {
  const auto micros = [](Nanoseconds time) { return static_cast<double>(time) / 1e3; };
  if (graph.kinds().empty()) return fmt::format("{}", micros(graph.time(node)));
  std::string list;
  for (std::size_t kind = 0; kind < graph.kinds().size(); ++kind)
    if (const Nanoseconds time = graph.time(node, kind); time != kNone)
      list += fmt::format("{}{}: {}", list.empty() ? "" : ", ", json(graph.kinds()[kind]), micros(time));
  return fmt::format("{{{}}}", list);
}

}  // namespace

std::string task_graph_json(const TaskGraph& graph) {
  if (graph.has_transfer_times())
    throw std::runtime_error("the edges have times (cost), which our format cannot hold");
  fmt::memory_buffer out;
  const auto at = std::back_inserter(out);
  fmt::format_to(at, "{{\"nodes\": [");
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    fmt::format_to(at, "{}\n{{\"id\": {}", node > 0 ? "," : "", graph.id(node));
    if (!graph.name(node).empty()) fmt::format_to(at, ", \"name\": {}", json(graph.name(node)));
    fmt::format_to(at, ", \"time_us\": {}, \"resident_bytes\": {}, \"output_bytes\": {}", times(graph, node),
                   graph.resident_bytes(node), graph.output_bytes(node));
    if (graph.parameter_bytes(node) != graph.resident_bytes(node))
      fmt::format_to(at, ", \"parameter_bytes\": {}", graph.parameter_bytes(node));
    if (graph.pin(node) != kNone) fmt::format_to(at, ", \"pin\": {}", graph.pin(node));
    if (graph.group(node) != kNone) fmt::format_to(at, ", \"colocate\": {}", graph.group(node));
    fmt::format_to(at, "}}");
  }
  fmt::format_to(at, "],\n\"edges\": [");
  for (EdgeIndex edge = 0; edge < graph.edge_count(); ++edge) {
    const NodeIndex from = graph.source(edge);
    fmt::format_to(at, "{}\n{{\"from\": {}, \"to\": {}", edge > 0 ? "," : "", graph.id(from),
                   graph.id(graph.target(edge)));
    if (graph.bytes(edge) != graph.output_bytes(from))
      fmt::format_to(at, ", \"bytes\": {}", graph.bytes(edge));
    fmt::format_to(at, "}}");
  }
  fmt::format_to(at, "]}}\n");
  return fmt::to_string(out);
}

}  // namespace convoy::partition

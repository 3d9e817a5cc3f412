// Trace events: complete events for nodes and transfers, counters for memory.
#include "partition/simulation/chrome_trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace convoy::partition {
namespace {

double micros(Nanoseconds time) { return static_cast<double>(time) / 1e3; }
std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string chrome_trace(const TaskGraph& graph, const Simulation& simulation) {
  fmt::memory_buffer out;
  const auto at = std::back_inserter(out);
  fmt::format_to(at, "{{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n");
  for (std::size_t device = 0; device < simulation.order.size(); ++device) {
    for (const auto& [thread, name] : {std::pair{2 * device, "compute"}, std::pair{2 * device + 1, "send"}})
      fmt::format_to(at,
                     R"({{"ph":"M","pid":0,"tid":{},"name":"thread_name","args":{{"name":"device {} {}"}}}},)"
                     "\n",
                     thread, device, name);
    for (const NodeIndex node : simulation.order[device])
      fmt::format_to(
          at,
          R"({{"ph":"X","pid":0,"tid":{},"name":{},"ts":{},"dur":{},"args":{{"id":{},"output_bytes":{}}}}},)"
          "\n",
          2 * device, quoted(graph.name(node).empty() ? std::to_string(graph.id(node)) : graph.name(node)),
          micros(simulation.start[node]), micros(simulation.finish[node] - simulation.start[node]),
          graph.id(node), graph.output_bytes(node));
    if (device < simulation.memory.size())
      for (const MemorySample& sample : simulation.memory[device])
        fmt::format_to(at,
                       R"({{"ph":"C","pid":0,"name":"memory {}","ts":{},"args":{{"bytes":{}}}}},)"
                       "\n",
                       device, micros(sample.time), sample.bytes);
  }
  for (const Transfer& transfer : simulation.transfers)
    fmt::format_to(
        at,
        R"({{"ph":"X","pid":0,"tid":{},"name":"to {}","ts":{},"dur":{},"args":{{"producer":{},"bytes":{}}}}},)"
        "\n",
        2 * transfer.from + 1, transfer.to, micros(transfer.start), micros(transfer.arrival - transfer.start),
        graph.id(transfer.producer), transfer.bytes);
  fmt::format_to(at, R"({{"ph":"M","pid":0,"name":"process_name","args":{{"name":"simulated placement"}}}})"
                     "\n]}}\n");
  return fmt::to_string(out);
}

}  // namespace convoy::partition

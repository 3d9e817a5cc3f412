// Writes each device as a process of the trace. Each node and each transfer is one event with a
// start and a duration (called a complete event). Memory is a counter.
#include "partition/simulation/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace convoy::partition {
namespace {

double micros(Nanoseconds time) { return static_cast<double>(time) / 1e3; }
std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Assigns overlapping transfers to different tracks of the trace, because slices of one track must
// not overlap.
class SendTracks {
 public:
  explicit SendTracks(std::size_t devices) : until_(devices) {}
  std::size_t take(const SimulatedTransfer& transfer) {
    std::vector<Nanoseconds>& until = until_[transfer.from];
    std::size_t track = 0;
    while (track < until.size() && until[track] > transfer.start) ++track;
    if (track == until.size()) until.push_back(0);
    until[track] = transfer.arrival;
    return 1 + track;
  }

 private:
  std::vector<std::vector<Nanoseconds>> until_;  // end of the last transfer, by device and track
};

}  // namespace

std::string chrome_trace(const TaskGraph& graph, const Simulation& simulation) {
  fmt::memory_buffer out;
  const auto at = std::back_inserter(out);
  fmt::format_to(at, "{{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n");
  for (std::size_t device = 0; device < simulation.order.size(); ++device) {
    fmt::format_to(at,
                   R"({{"ph":"M","pid":{0},"name":"process_name","args":{{"name":"device {0}"}}}},)"
                   "\n",
                   device);
    fmt::format_to(at,
                   R"({{"ph":"M","pid":{},"tid":0,"name":"thread_name","args":{{"name":"compute"}}}},)"
                   "\n",
                   device);
    for (const NodeIndex node : simulation.order[device])
      fmt::format_to(
          at,
          R"({{"ph":"X","pid":{},"tid":0,"name":{},"ts":{},"dur":{},"args":{{"id":{},"output_bytes":{}}}}},)"
          "\n",
          device, quoted(graph.name(node).empty() ? std::to_string(graph.id(node)) : graph.name(node)),
          micros(simulation.start[node]), micros(simulation.finish[node] - simulation.start[node]),
          graph.id(node), graph.output_bytes(node));
    if (device < simulation.memory.size())
      for (const MemorySample& sample : simulation.memory[device])
        fmt::format_to(at,
                       R"({{"ph":"C","pid":{},"name":"memory","ts":{},"args":{{"bytes":{}}}}},)"
                       "\n",
                       device, micros(sample.time), sample.bytes);
  }
  SendTracks tracks(simulation.order.size());
  std::vector<std::size_t> used(simulation.order.size(), 0);
  for (const SimulatedTransfer& transfer : simulation.transfers) {
    const std::size_t track = tracks.take(transfer);
    used[transfer.from] = std::max(used[transfer.from], track);
    fmt::format_to(
        at,
        R"({{"ph":"X","pid":{},"tid":{},"name":"to {}","ts":{},"dur":{},"args":{{"producer":{},"bytes":{}}}}},)"
        "\n",
        transfer.from, track, transfer.to, micros(transfer.start), micros(transfer.arrival - transfer.start),
        graph.id(transfer.producer), transfer.bytes);
  }
  for (std::size_t device = 0; device < used.size(); ++device)
    for (std::size_t track = 1; track <= used[device]; ++track)
      fmt::format_to(at,
                     R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"send {}"}}}},)"
                     "\n",
                     device, track, track);
  fmt::format_to(at,
                 R"({{"ph":"M","pid":0,"name":"process_labels","args":{{"labels":"simulated placement"}}}})"
                 "\n]}}\n");
  return fmt::to_string(out);
}

}  // namespace convoy::partition

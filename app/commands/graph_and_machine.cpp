#include "app/commands/graph_and_machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <string_view>

#include "app/commands/model_graph.h"
#include "app/commands/validators.h"
#include "app/errors.h"
#include "partition/graph/brief.h"
#include "partition/graph/generators.h"
#include "partition/graph/read_task_graph.h"
#include "partition/graph/read_text.h"
#include "partition/simulation/topology.h"

namespace convoy::app {

using namespace convoy::partition;

namespace {

constexpr std::string_view kGenerated = "generated:";

// Generates the graph that "generated:FAMILY:NODES" names.
TaskGraph generated(const std::string& text) {
  const std::size_t colon = text.find(':', kGenerated.size());
  GeneratorOptions options;
  std::string nodes = colon == std::string::npos ? "" : text.substr(colon + 1);
  constexpr std::size_t kMostDigits = 8;
  if (nodes.empty() || nodes.size() > kMostDigits ||
      nodes.find_first_not_of("0123456789") != std::string::npos)
    throw UsageError(fmt::format(
        "--graph: found '{}', expected generated:FAMILY:NODES, as generated:transformer:11000", brief(text)));
  options.nodes = static_cast<NodeIndex>(std::stol(nodes));
  // Refuse a graph that does not fit into the free memory. A graph of a million nodes with three
  // edges each takes 0.6 GB, with all data that are derived from it (measured).
  constexpr std::int64_t kBytesPerNode = 600;
  const std::int64_t free = std::int64_t{::sysconf(_SC_AVPHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  if (options.nodes > free / kBytesPerNode)
    throw UsageError(fmt::format("--graph: {} takes about {} MiB, and {} are free", brief(text),
                                 options.nodes * kBytesPerNode >> 20, free >> 20));
  try {
    return generate_task_graph(text.substr(kGenerated.size(), colon - kGenerated.size()), options);
  } catch (const std::runtime_error& error) {
    throw UsageError(fmt::format("--graph: {}", error.what()));
  }
}

}  // namespace

void GraphAndMachineFlags::add_to(CLI::App& verb) {
  verb.option_defaults()->group("Graph and machine");
  verb.add_option("--graph", graph,
                  "task graph: JSON (ours, Microsoft's or Piper's), a PipeDream profile, a ParDNN folder, "
                  "generated:FAMILY:NODES or model:NAME|FILE.onnx:BATCH[:SIZE]")
      ->required()
      ->check(not_empty())
      ->type_name("F");
  verb.add_option("--devices", devices, "how many; default: what Microsoft's and Piper's files say")
      ->check(whole_number(1, kMostDevices))
      ->type_name("K");
  verb.add_option("--memory", memory,
                  "limit of every device, or one a device; default: what Microsoft's and Piper's files say, "
                  "else none")
      ->transform(size_in_bytes())
      ->delimiter(',')
      ->type_name("SIZE");
  verb.add_option("--speeds", speeds, "relative speed, one a device; default: 1")
      ->check(number_in("(0, inf)"))
      ->delimiter(',')
      ->type_name("S");
  verb.add_option("--latency-us", latency_us, "of a transfer between devices")
      ->check(number_in("[0, 1e9)"))
      ->type_name("US")
      ->capture_default_str();
  verb.add_option("--bandwidth-gbps", bandwidth_gbps,
                  "between devices, 10^9 bytes a second; Piper's files have their own")
      ->check(number_in("(0, inf)"))
      ->type_name("GBPS")
      ->capture_default_str();
  verb.add_option("--devices-per-node", devices_per_node, "devices that share a node; default: all")
      ->check(whole_number(1, kMostDevices))
      ->type_name("N");
  verb.add_option("--node-latency-us", node_latency_us, "of a transfer between nodes")
      ->check(number_in("[0, 1e9)"))
      ->type_name("US")
      ->capture_default_str();
  verb.add_option("--node-bandwidth-gbps", node_bandwidth_gbps, "between nodes")
      ->check(number_in("(0, inf)"))
      ->type_name("GBPS")
      ->capture_default_str();
  bandwidth_flag = verb.get_option("--bandwidth-gbps");
  for (const char* flag : {"--latency-us", "--bandwidth-gbps", "--devices-per-node", "--node-latency-us",
                           "--node-bandwidth-gbps"})
    link_flags.push_back(verb.get_option(flag));
  for (const char* flag : {"--node-latency-us", "--node-bandwidth-gbps"})
    node_flags.push_back(verb.get_option(flag));
  verb.add_flag("--contention", contention, "one transfer at a time per device and direction");
  verb.add_flag("--color-classes", color_classes, "keep Microsoft's colour classes together");
}

void GraphAndMachineFlags::check_links() const {
  for (const CLI::Option* flag : link_flags)
    if (!topology.empty() && flag->count() > 0)
      throw UsageError(
          fmt::format("{}: does not go with --topology, whose file has the links", flag->get_name()));
  for (const CLI::Option* flag : node_flags)
    if (devices_per_node == 0 && flag->count() > 0)
      throw UsageError(fmt::format("{}: belongs to --devices-per-node, found none", flag->get_name()));
}

TaskGraph GraphAndMachineFlags::read_graph() const {
  if (graph.starts_with(kGenerated)) return generated(graph);
  if (graph.starts_with(kModelGraph)) return model_task_graph(graph, profile, topology);
  if (!profile.empty()) throw UsageError("--profile: goes with --graph model:NAME:BATCH");
  return read_task_graph(graph, {.color_classes = color_classes});
}

DeviceIndex GraphAndMachineFlags::device_count(const TaskGraph& task_graph) const {
  if (devices == 0 && !topology.empty())
    return parse_topology(read_text(topology), topology, 0).device_count();
  if (devices == 0 && task_graph.device_count() == 0) throw UsageError("--devices is required");
  return devices > 0 ? devices : task_graph.device_count();
}

void GraphAndMachineFlags::check_kinds(const TaskGraph& task_graph, const Machine& machine) const {
  if (topology.empty())
    throw UsageError(fmt::format("--topology is required: {} has times for devices of kind {}", graph,
                                 brief(fmt::format("{}", fmt::join(task_graph.kinds(), ", ")))));
  try {
    CostModel(task_graph, machine);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {} (devices of {})", graph, error.what(), topology));
  }
}

Machine GraphAndMachineFlags::machine(const TaskGraph& task_graph, DeviceIndex device_count) const {
  const auto check_list = [&](const char* flag, std::size_t size, bool one_for_all) {
    if (size > 0 && size != static_cast<std::size_t>(device_count) && !(one_for_all && size == 1))
      throw UsageError(fmt::format("{}: found {} values, expected {}{}", flag, size,
                                   one_for_all ? "1 or " : "", device_count));
  };
  check_list("--memory", memory.size(), true);
  check_list("--speeds", speeds.size(), false);
  const auto link = [](double latency, double bandwidth) {
    return Link{static_cast<Nanoseconds>(latency * 1e3 + 0.5), bandwidth};
  };
  const bool own_bandwidth = bandwidth_flag != nullptr && bandwidth_flag->count() > 0;
  const double between =
      own_bandwidth || task_graph.bytes_per_ns() == 0 ? bandwidth_gbps : task_graph.bytes_per_ns();
  const DeviceIndex per_node = devices_per_node > 0 ? devices_per_node : device_count;
  if (device_count % per_node != 0)
    throw UsageError(fmt::format("--devices-per-node: found {}, expected a divisor of the {} devices",
                                 per_node, device_count));
  Machine machine = topology.empty()
                        ? Machine::cluster(device_count / per_node, per_node, link(latency_us, between),
                                           link(node_latency_us, node_bandwidth_gbps))
                        : parse_topology(read_text(topology), topology, device_count);
  for (DeviceIndex device = 0; device < device_count; ++device) {
    if (memory.empty() && task_graph.device_memory() > 0 && machine.device(device).memory_limit == kUnlimited)
      machine.device(device).memory_limit = task_graph.device_memory();
    if (!memory.empty()) machine.device(device).memory_limit = memory[memory.size() == 1 ? 0 : device];
    if (!speeds.empty()) machine.device(device).speed = speeds[device];
  }
  machine.set_contention(contention);
  if (!task_graph.kinds().empty()) check_kinds(task_graph, machine);
  return machine;
}

}  // namespace convoy::app

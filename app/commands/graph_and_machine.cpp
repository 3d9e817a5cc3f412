#include "app/commands/graph_and_machine.h"

#include <fmt/format.h>

#include <string_view>

#include "app/commands/validators.h"
#include "app/errors.h"
#include "partition/graph/generators.h"
#include "partition/graph/read_task_graph.h"

namespace convoy::app {

using namespace convoy::partition;

namespace {

constexpr std::string_view kGenerated = "generated:";

// generated:FAMILY:NODES
TaskGraph generated(const std::string& text) {
  const std::size_t colon = text.find(':', kGenerated.size());
  GeneratorOptions options;
  std::string nodes = colon == std::string::npos ? "" : text.substr(colon + 1);
  constexpr std::size_t kMostDigits = 8;
  if (nodes.empty() || nodes.size() > kMostDigits ||
      nodes.find_first_not_of("0123456789") != std::string::npos)
    throw UsageError(fmt::format(
        "--graph: found '{}', expected generated:FAMILY:NODES, as generated:transformer:11000", text));
  options.nodes = static_cast<NodeIndex>(std::stol(nodes));
  try {
    return generate_task_graph(text.substr(kGenerated.size(), colon - kGenerated.size()), options);
  } catch (const std::runtime_error& error) {
    throw UsageError(fmt::format("--graph: {}", error.what()));
  }
}

}  // namespace

void GraphAndMachineFlags::add_to(CLI::App& verb, bool devices_required) {
  verb.option_defaults()->group("Graph and machine");
  verb.add_option("--graph", graph,
                  "task graph: JSON (ours or Microsoft's), a ParDNN folder, or generated:FAMILY:NODES")
      ->required()
      ->check(not_empty())
      ->type_name("F");
  auto* count =
      verb.add_option("--devices", devices, "how many")->check(whole_number(1, kMostDevices))->type_name("K");
  if (devices_required) count->required();
  verb.add_option("--memory", memory, "limit of every device, or one a device; default: none")
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
  verb.add_option("--bandwidth-gbps", bandwidth_gbps, "between devices, 10^9 bytes a second")
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
  verb.add_flag("--contention", contention, "one transfer at a time per device and direction");
  verb.add_flag("--color-classes", color_classes, "keep Microsoft's colour classes together");
}

TaskGraph GraphAndMachineFlags::read_graph() const {
  if (graph.starts_with(kGenerated)) return generated(graph);
  return read_task_graph(graph, {.color_classes = color_classes});
}

Machine GraphAndMachineFlags::machine(DeviceIndex device_count) const {
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
  const DeviceIndex per_node = devices_per_node > 0 ? devices_per_node : device_count;
  if (device_count % per_node != 0)
    throw UsageError(fmt::format("--devices-per-node: found {}, expected a divisor of the {} devices",
                                 per_node, device_count));
  Machine machine = Machine::cluster(device_count / per_node, per_node, link(latency_us, bandwidth_gbps),
                                     link(node_latency_us, node_bandwidth_gbps));
  for (DeviceIndex device = 0; device < device_count; ++device) {
    if (!memory.empty()) machine.device(device).memory_limit = memory[memory.size() == 1 ? 0 : device];
    if (!speeds.empty()) machine.device(device).speed = speeds[device];
  }
  machine.set_contention(contention);
  return machine;
}

}  // namespace convoy::app

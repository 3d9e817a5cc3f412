// Reads and writes placements as JSON, and checks whether a placement is valid for its graph.
#include "partition/simulation/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "partition/graph/brief.h"
#include "partition/graph/parse_json.h"

namespace convoy::partition {
namespace {

using Json = nlohmann::json;

class PlacementReader {
 public:
  PlacementReader(const TaskGraph& graph, const std::string& where) : graph_(graph), where_(where) {
    for (NodeIndex node = 0; node < graph.node_count(); ++node) index_.emplace(graph.id(node), node);
  }
  Placement read(std::string_view text);

 private:
  [[noreturn]] void fail(const std::string& what) const {
    std::string line = what;  // keep the message on one line, whatever names and keys contain
    std::replace_if(
        line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    throw std::runtime_error(fmt::format("{}: {}", where_, line));
  }
  NodeIndex node_of(std::int64_t id, const char* field) const {
    const auto found = index_.find(id);
    if (found == index_.end()) fail(fmt::format("{}: the graph has no node {}", field, id));
    return found->second;
  }
  const Json& member(const Json& document, const char* field) const {
    const auto found = document.find(field);
    if (found == document.end()) fail(fmt::format("field {} is missing", field));
    return *found;
  }
  void read_devices(const Json& devices_of);
  void read_order(const Json& order);
  void check_names(const Json& names) const;
  NodeIndex node_of_key(const std::string& key, const char* field) const;

  const TaskGraph& graph_;
  const std::string& where_;
  std::unordered_map<std::int64_t, NodeIndex> index_;
  Placement result_;
};

void PlacementReader::read_devices(const Json& device_of) {
  if (!device_of.is_object()) fail("field device_of is not an object");
  result_.device_of.assign(graph_.node_count(), kNone);
  for (const auto& [key, value] : device_of.items()) {
    const NodeIndex node = node_of_key(key, "device_of");
    if (result_.device_of[node] != kNone) fail(fmt::format("device_of: node {} is given twice", brief(key)));
    if (!value.is_number_integer() || value.get<std::int64_t>() < 0 ||
        value.get<std::int64_t>() >= result_.devices)
      fail(fmt::format("device_of: node {} is on {}, expected 0 to {}", brief(key), brief(value.dump()),
                       result_.devices - 1));
    result_.device_of[node] = value.get<DeviceIndex>();
  }
}

NodeIndex PlacementReader::node_of_key(const std::string& key, const char* field) const {
  std::int64_t id = 0;
  const char* end = key.data() + key.size();
  const auto [stop, error] = std::from_chars(key.data(), end, id);
  if (error != std::errc() || stop != end)
    fail(fmt::format("{}: key \"{}\" is not an id", field, brief(key)));
  return node_of(id, field);
}

// Throws if a name differs from the node's name in the graph. Names are only for readers, but a
// wrong one shows that the placement belongs to another graph.
void PlacementReader::check_names(const Json& names) const {
  if (!names.is_object()) fail("field names is not an object");
  for (const auto& [key, value] : names.items()) {
    const NodeIndex node = node_of_key(key, "names");
    if (!value.is_string() || value.get<std::string>() != graph_.name(node))
      fail(fmt::format("names: node {} is {}, but the graph has {}", brief(key), brief(value.dump()),
                       graph_.label(node)));
  }
}

void PlacementReader::read_order(const Json& order) {
  if (!order.is_array() || std::ssize(order) != result_.devices)
    fail(fmt::format("field order has {} lists, expected {}, one per device", order.size(), result_.devices));
  result_.order.resize(result_.devices);
  for (DeviceIndex device = 0; device < result_.devices; ++device) {
    if (!order[device].is_array()) fail(fmt::format("order: device {} has no list", device));
    for (const Json& id : order[device]) {
      if (!id.is_number_integer())
        fail(fmt::format("order: device {} lists {}, expected an id", device, brief(id.dump())));
      result_.order[device].push_back(node_of(id.get<std::int64_t>(), "order"));
    }
  }
}

Placement PlacementReader::read(std::string_view text) {
  const Json document = parse_json(text, [&](const std::string& what) { fail(what); });
  if (!document.is_object()) fail("expected an object with devices and device_of");
  for (const auto& [key, value] : document.items())
    if (key != "devices" && key != "device_of" && key != "order" && key != "names")
      fail(fmt::format("unknown field {}", brief(key)));
  const Json& devices = member(document, "devices");
  if (!devices.is_number_integer() || devices.get<std::int64_t>() < 1 ||
      devices.get<std::int64_t>() > kMostDevices)
    fail(fmt::format("devices is {}, expected 1 to {}", brief(devices.dump()), kMostDevices));
  result_.devices = devices.get<DeviceIndex>();
  read_devices(member(document, "device_of"));
  if (document.contains("order")) read_order(document["order"]);
  if (document.contains("names")) check_names(document["names"]);
  try {
    check_placement(graph_, result_);
  } catch (const std::runtime_error& error) {
    fail(error.what());
  }
  return std::move(result_);
}

void check_order(const TaskGraph& graph, const Placement& placement) {
  if (std::ssize(placement.order) != placement.devices)
    throw std::runtime_error(
        fmt::format("order has {} lists, expected {}", placement.order.size(), placement.devices));
  std::vector<bool> seen(graph.node_count(), false);
  for (DeviceIndex device = 0; device < placement.devices; ++device)
    for (const NodeIndex node : placement.order[device]) {
      if (placement.device_of[node] != device)
        throw std::runtime_error(fmt::format("node {} is on device {} but in the order of device {}",
                                             graph.label(node), placement.device_of[node], device));
      if (seen[node])
        throw std::runtime_error(fmt::format("node {} is twice in the order", graph.label(node)));
      seen[node] = true;
    }
  for (NodeIndex node = 0; node < graph.node_count(); ++node)
    if (!seen[node])
      throw std::runtime_error(fmt::format("node {} is missing from the order", graph.label(node)));
}

}  // namespace

std::string placement_json(const TaskGraph& graph, const Placement& placement) {
  fmt::memory_buffer out;
  const auto at = std::back_inserter(out);
  fmt::format_to(at, "{{\"devices\": {}, \"device_of\": {{", placement.devices);
  for (NodeIndex node = 0; node < graph.node_count(); ++node)
    fmt::format_to(at, "{}\"{}\": {}", node > 0 ? ", " : "", graph.id(node), placement.device_of[node]);
  fmt::format_to(at, "}}");
  if (!placement.order.empty()) {
    fmt::format_to(at, ", \"order\": [");
    for (std::size_t device = 0; device < placement.order.size(); ++device) {
      fmt::format_to(at, "{}[", device > 0 ? ", " : "");
      for (std::size_t i = 0; i < placement.order[device].size(); ++i)
        fmt::format_to(at, "{}{}", i > 0 ? ", " : "", graph.id(placement.order[device][i]));
      fmt::format_to(at, "]");
    }
    fmt::format_to(at, "]");
  }
  bool first = true;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.name(node).empty()) continue;
    // Leave out a name that is not valid UTF-8, because it would change when it is read back.
    const std::string name = Json(graph.name(node)).dump(-1, ' ', false, Json::error_handler_t::replace);
    if (Json::parse(name).get<std::string>() != graph.name(node)) continue;
    fmt::format_to(at, "{}\"{}\": {}", std::exchange(first, false) ? ", \"names\": {" : ", ", graph.id(node),
                   name);
  }
  fmt::format_to(at, "{}}}\n", first ? "" : "}");
  return fmt::to_string(out);
}

Placement parse_placement_json(std::string_view text, const TaskGraph& graph, const std::string& where) {
  return PlacementReader(graph, where).read(text);
}

void check_placement(const TaskGraph& graph, const Placement& placement) {
  if (std::ssize(placement.device_of) != graph.node_count())
    throw std::runtime_error(
        fmt::format("{} nodes placed, expected {}", placement.device_of.size(), graph.node_count()));
  std::vector<NodeIndex> first(graph.group_count(), kNone);
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const DeviceIndex device = placement.device_of[node];
    if (device < 0 || device >= placement.devices)
      throw std::runtime_error(fmt::format("node {} is not placed", graph.label(node)));
    if (graph.pin(node) != kNone && graph.pin(node) != device)
      throw std::runtime_error(fmt::format("node {} is on device {} but pinned to {}", graph.label(node),
                                           device, graph.pin(node)));
    if (graph.group(node) == kNone) continue;
    NodeIndex& other = first[graph.group(node)];
    if (other == kNone) other = node;
    if (placement.device_of[other] != device)
      throw std::runtime_error(
          fmt::format("node {} is on device {} but node {} of its colocation group is on {}",
                      graph.label(node), device, graph.label(other), placement.device_of[other]));
  }
  if (!placement.order.empty()) check_order(graph, placement);
}

}  // namespace convoy::partition

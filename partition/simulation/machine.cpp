// Machines with equal or different links, and the costs of a graph on a machine.
#include "partition/simulation/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "partition/graph/brief.h"
#include "partition/simulation/communication_bound.h"

namespace convoy::partition {
namespace {

void check(const Link& link) {
  if (link.latency < 0 || !(link.bytes_per_ns > 0))
    throw std::invalid_argument(fmt::format("link: latency {} ns and {} GB/s, expected 0 or more and above 0",
                                            link.latency, link.bytes_per_ns));
}

}  // namespace

Machine Machine::uniform(DeviceIndex devices, Link link, Bytes memory_limit) {
  if (devices < 1)
    throw std::invalid_argument(fmt::format("machine: {} devices, expected 1 or more", devices));
  check(link);
  Machine machine;
  machine.devices_.assign(devices, {memory_limit, 1, {}});
  machine.links_.assign(static_cast<std::size_t>(devices) * devices, link);
  return machine;
}

Machine Machine::cluster(DeviceIndex nodes, DeviceIndex devices_per_node, Link inside, Link between,
                         Bytes memory_limit) {
  check(between);
  Machine machine = uniform(nodes * devices_per_node, inside, memory_limit);
  for (DeviceIndex from = 0; from < machine.device_count(); ++from)
    for (DeviceIndex to = 0; to < machine.device_count(); ++to)
      if (from / devices_per_node != to / devices_per_node)
        machine.links_[static_cast<std::size_t>(from) * machine.device_count() + to] = between;
  machine.compare_links();
  return machine;
}

Machine Machine::of(std::vector<Device> devices, std::vector<Link> links) {
  Machine machine = uniform(static_cast<DeviceIndex>(devices.size()), {});
  if (links.size() != machine.links_.size())
    throw std::invalid_argument("machine: expected a link for each pair");
  for (DeviceIndex from = 0; from < machine.device_count(); ++from)
    for (DeviceIndex to = 0; to < machine.device_count(); ++to)
      if (from != to) check(links[static_cast<std::size_t>(from) * devices.size() + to]);
  machine.devices_ = std::move(devices);
  machine.links_ = std::move(links);
  machine.compare_links();
  return machine;
}

void Machine::set_link(DeviceIndex from, DeviceIndex to, Link link) {
  check(link);
  links_[static_cast<std::size_t>(from) * device_count() + to] = link;
  compare_links();
}

void Machine::compare_links() {
  same_links_ = true;
  const Link& first = links_[device_count() > 1 ? 1 : 0];
  for (DeviceIndex a = 0; a < device_count(); ++a)
    for (DeviceIndex b = 0; b < device_count(); ++b)
      if (a != b && (link(a, b).latency != first.latency || link(a, b).bytes_per_ns != first.bytes_per_ns))
        same_links_ = false;
}

bool Machine::same_speeds() const {
  return std::all_of(devices_.begin(), devices_.end(),
                     [](const Device& device) { return device.speed == 1; });
}

bool Machine::limited() const {
  return std::any_of(devices_.begin(), devices_.end(),
                     [](const Device& device) { return device.memory_limit != kUnlimited; });
}

// Throws if the sum of all times and transfers is too large for 64 bits. No schedule is longer than
// this sum, and the path lengths by which placement algorithms rank nodes stay below four times the
// sum.
void CostModel::check_sum() const {
  constexpr double kMost = 1e18;
  double slowness = 0, latency = 0, ns_per_byte = 0;
  const DeviceIndex devices = machine_.device_count();
  for (DeviceIndex from = 0; from < devices; ++from) {
    slowness = std::max(slowness, 1 / machine_.device(from).speed);
    for (DeviceIndex to = 0; to < devices; ++to) {
      if (from == to) continue;
      latency = std::max(latency, static_cast<double>(machine_.link(from, to).latency));
      ns_per_byte = std::max(ns_per_byte, 1 / machine_.link(from, to).bytes_per_ns);
    }
  }
  double sum = 0;
  for (NodeIndex node = 0; !kind_.empty() && node < graph_.node_count(); ++node)
    for (const std::size_t kind : kind_) sum += static_cast<double>(graph_.time(node, kind)) * slowness;
  if (kind_.empty()) sum = static_cast<double>(graph_.total_time()) * slowness;
  for (EdgeIndex edge = 0; devices > 1 && edge < graph_.edge_count(); ++edge)
    sum += latency + (graph_.has_transfer_times() ? static_cast<double>(graph_.transfer_time(edge))
                                                  : static_cast<double>(graph_.bytes(edge)) * ns_per_byte);
  if (!(sum < kMost))
    throw std::runtime_error(fmt::format(
        "machine: all times and transfers add up to {:.2g} ns, expected below {:.0e}", sum, kMost));
}

void CostModel::match_kinds() {
  const std::vector<std::string>& kinds = graph_.kinds();
  const DeviceIndex devices = machine_.device_count();
  for (DeviceIndex device = 0; device < devices; ++device) {
    const std::string& wanted = machine_.device(device).kind;
    kind_.push_back(static_cast<std::size_t>(std::ranges::find(kinds, wanted) - kinds.begin()));
  }
  average_time_.reserve(graph_.node_count());
  for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
    Nanoseconds sum = 0;
    for (DeviceIndex device = 0; device < devices; ++device) {
      const bool known = kind_[device] < kinds.size();
      if (!known || graph_.time(node, kind_[device]) == kNone)
        throw std::runtime_error(
            fmt::format("node {}: no time for device {}, which is of kind \"{}\"; the graph has times for {}",
                        graph_.label(node), device, brief(machine_.device(device).kind),
                        brief(fmt::format("{}", fmt::join(kinds, ", ")))));
      sum += run_time(node, device);
      speed_[device] += static_cast<double>(run_time(node, device));
    }
    average_time_.push_back(sum / devices);
  }
  for (double& speed : speed_)
    speed = std::max(1.0, static_cast<double>(graph_.total_time())) / std::max(1.0, speed);
}

CostModel::CostModel(const TaskGraph& graph, const Machine& machine)
    : graph_(graph), machine_(machine), same_speeds_(machine.same_speeds() && graph.kinds().empty()) {
  const DeviceIndex devices = machine.device_count();
  average_slowness_ = 0;
  for (DeviceIndex device = 0; device < devices; ++device) {
    if (!(machine.device(device).speed > 0))
      throw std::invalid_argument("machine: a device's speed must be above 0");
    average_slowness_ += 1 / machine.device(device).speed / devices;
    speed_.push_back(graph.kinds().empty() ? machine.device(device).speed : 0);
  }
  if (!graph.kinds().empty()) match_kinds();
  double latency = 0, ns_per_byte = 0, pairs = 0;
  for (DeviceIndex from = 0; from < devices; ++from)
    for (DeviceIndex to = 0; to < devices; ++to)
      if (from != to) {
        latency += static_cast<double>(machine.link(from, to).latency);
        ns_per_byte += 1 / machine.link(from, to).bytes_per_ns;
        ++pairs;
      }
  check_sum();
  pairs = std::max(pairs, 1.0);
  const Link average{std::llround(latency / pairs), machine.same_links() || ns_per_byte == 0
                                                        ? machine.link(0, devices > 1 ? 1 : 0).bytes_per_ns
                                                        : pairs / ns_per_byte};
  average_transfer_.resize(graph.edge_count());
  one_size_.assign(graph.node_count(), true);
  for (EdgeIndex edge = 0; edge < graph.edge_count(); ++edge) {
    average_transfer_[edge] = linked_transfer_time(edge, average);
    const EdgeIndex first = graph.out_begin(graph.source(edge));
    if (graph.bytes(edge) == graph.bytes(first) && average_transfer_[edge] == average_transfer_[first])
      continue;
    one_size_[graph.source(edge)] = false;
    all_one_size_ = false;
  }
}

namespace {

Nanoseconds least_time(const CostModel& cost, NodeIndex node) {
  Nanoseconds least = cost.run_time(node, 0);
  for (DeviceIndex device = 1; device < cost.device_count(); ++device)
    least = std::min(least, cost.run_time(node, device));
  return least;
}

// Returns the length of the critical path if every node runs on its fastest device.
Nanoseconds shortest_critical_path(const CostModel& cost) {
  const TaskGraph& graph = cost.graph();
  std::vector<Nanoseconds> finish(graph.node_count(), 0);
  Nanoseconds longest = 0;
  for (const NodeIndex node : graph.topological_order()) {
    finish[node] += least_time(cost, node);
    longest = std::max(longest, finish[node]);
    for (const NodeIndex next : graph.successors(node)) finish[next] = std::max(finish[next], finish[node]);
  }
  return longest;
}

// Returns the total work divided by the sum of speeds, which is a lower bound on the makespan. The
// work of a node is its run time times the speed of the device. Run times are rounded to
// nanoseconds, so this product differs between devices, and the least one counts. If the graph has
// times by kind of device, the work of a node is its least run time, and all speeds count as 1.
Nanoseconds balanced_work(const CostModel& cost) {
  if (!cost.graph().kinds().empty()) {
    Nanoseconds sum = 0;
    for (NodeIndex node = 0; node < cost.graph().node_count(); ++node) sum += least_time(cost, node);
    return (sum + cost.device_count() - 1) / cost.device_count();
  }
  // The distinct speeds, each with one device that has it.
  std::vector<std::pair<double, DeviceIndex>> speeds;
  double sum = 0, work = 0;
  for (DeviceIndex device = 0; device < cost.device_count(); ++device) {
    speeds.emplace_back(cost.machine().device(device).speed, device);
    sum += speeds.back().first;
  }
  const auto same_speed = [](const auto& a, const auto& b) { return a.first == b.first; };
  std::sort(speeds.begin(), speeds.end());
  speeds.erase(std::unique(speeds.begin(), speeds.end(), same_speed), speeds.end());
  for (NodeIndex node = 0; node < cost.graph().node_count(); ++node) {
    double least = std::numeric_limits<double>::max();
    for (const auto& [speed, device] : speeds)
      least = std::min(least, speed * static_cast<double>(cost.run_time(node, device)));
    work += least;
  }
  constexpr double kRounding = 1e-9;  // keeps the bound below its exact value in spite of rounding
  return static_cast<Nanoseconds>(std::ceil(work / sum * (1 - kRounding)));
}

}  // namespace

Nanoseconds makespan_lower_bound(const CostModel& cost) {
  const Nanoseconds with_transfers = communication_bound(cost);
  if (cost.same_speeds()) return std::max(with_transfers, cost.graph().lower_bound(cost.device_count()));
  return std::max({with_transfers, shortest_critical_path(cost), balanced_work(cost)});
}

}  // namespace convoy::partition

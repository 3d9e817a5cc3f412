// The simple baselines: one device, consecutive nodes per device, METIS.
#include "partition/placement/baselines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <metis.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <mutex>
#include <stdexcept>

#include "partition/simulation/simulator.h"

namespace convoy::partition {
namespace {

Placement from_units(const CostModel& cost, const UnitDevices& devices) {
  Placement result{cost.device_count(), std::vector<DeviceIndex>(cost.graph().node_count()), {}};
  for (NodeIndex node = 0; node < cost.graph().node_count(); ++node)
    result.device_of[node] = devices.of_node(node);
  return result;
}

}  // namespace

Placement place_on_one_device(const CostModel& cost, const Units& units) {
  DeviceIndex chosen = 0;
  for (DeviceIndex device = 1; device < cost.device_count(); ++device)
    if (cost.speed(device) > cost.speed(chosen)) chosen = device;
  UnitDevices devices(units);
  for (NodeIndex node = 0; node < cost.graph().node_count(); ++node)
    if (const DeviceIndex pin = devices.of_node(node); pin != kNone) {
      chosen = pin;
      break;
    }
  for (NodeIndex node = 0; node < cost.graph().node_count(); ++node)
    if (devices.of_node(node) == kNone) devices.set_node(node, chosen);
  return from_units(cost, devices);
}

bool is_on_one_device(const Placement& placement) {
  const auto& devices = placement.device_of;
  return std::adjacent_find(devices.begin(), devices.end(), std::not_equal_to<>()) == devices.end();
}

std::optional<Nanoseconds> one_device_time(const CostModel& cost, const Units& units) {
  const Placement placement = place_on_one_device(cost, units);
  if (!is_on_one_device(placement)) return {};
  return simulate(cost, placement, Detail::kTimes).makespan;
}

Placement place_contiguously(const CostModel& cost, const Units& units) {
  const TaskGraph& graph = cost.graph();
  const DeviceIndex count = cost.device_count();
  double speeds = 0;
  for (DeviceIndex device = 0; device < count; ++device) speeds += cost.speed(device);
  UnitDevices devices(units);
  DeviceIndex current = 0;
  double done = 0, share = cost.speed(0) / speeds;
  for (const NodeIndex node : graph.topological_order()) {
    const double time = static_cast<double>(graph.time(node));
    // Imagine the times of all nodes laid end to end on a line. Every device gets a section of the
    // line, in proportion to its speed. A node goes to the device whose section contains the middle
    // of the node's time.
    while (current + 1 < count && done + time / 2 > share * static_cast<double>(graph.total_time()))
      share += cost.speed(++current) / speeds;
    done += time;
    if (devices.of_node(node) == kNone) devices.set_node(node, current);
  }
  return from_units(cost, devices);
}

namespace {

// METIS's input: the undirected graph of units (units.h), with weights scaled to METIS's integers.
struct MetisGraph {
  std::vector<idx_t> begin, neighbour, cut_weight, work;

  MetisGraph(const CostModel& cost, const Units& units) {
    const TaskGraph& graph = cost.graph();
    const double total = std::max<double>(1, static_cast<double>(graph.total_time()));
    Nanoseconds largest = 1;
    for (EdgeIndex edge = 0; edge < graph.edge_count(); ++edge)
      largest = std::max(largest, cost.transfer_time(edge));
    constexpr double kWorkScale = 1e9, kCutScale = 1e4;
    work.assign(units.count(), 0);
    begin.assign(units.count() + 1, 0);
    for (NodeIndex node = 0; node < graph.node_count(); ++node)
      work[units.of(node)] += static_cast<idx_t>(static_cast<double>(graph.time(node)) / total * kWorkScale);
    const auto crosses = [&](EdgeIndex edge) {
      return units.of(graph.source(edge)) != units.of(graph.target(edge));
    };
    for (EdgeIndex edge = 0; edge < graph.edge_count(); ++edge)
      if (crosses(edge)) ++begin[units.of(graph.source(edge)) + 1], ++begin[units.of(graph.target(edge)) + 1];
    for (std::int32_t unit = 0; unit < units.count(); ++unit) begin[unit + 1] += begin[unit];
    neighbour.resize(begin.back()), cut_weight.resize(begin.back());
    std::vector<idx_t> next(begin.begin(), begin.end() - 1);
    for (EdgeIndex edge = 0; edge < graph.edge_count(); ++edge) {
      if (!crosses(edge)) continue;
      const std::int32_t from = units.of(graph.source(edge)), to = units.of(graph.target(edge));
      const double relative = static_cast<double>(cost.transfer_time(edge)) / static_cast<double>(largest);
      const idx_t weight = 1 + static_cast<idx_t>(relative * kCutScale);
      neighbour[next[from]] = to, cut_weight[next[from]++] = weight;
      neighbour[next[to]] = from, cut_weight[next[to]++] = weight;
    }
  }
};

// Redirects standard output while METIS runs. METIS prints to it if a part gets no vertex, for
// example if one node is heavier than two parts. With `--json`, standard output must be one JSON
// object.
class QuietStandardOutput {
 public:
  QuietStandardOutput() : one_at_a_time_(mutex()) {
    std::fflush(stdout);
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0) return;
    kept_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (kept_ >= 0) ::dup2(nowhere, STDOUT_FILENO);
    ::close(nowhere);
  }
  QuietStandardOutput(const QuietStandardOutput&) = delete;
  QuietStandardOutput& operator=(const QuietStandardOutput&) = delete;
  ~QuietStandardOutput() {
    std::fflush(stdout);
    if (kept_ < 0) return;
    ::dup2(kept_, STDOUT_FILENO);
    ::close(kept_);
  }

 private:
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  const std::lock_guard<std::mutex> one_at_a_time_;
  int kept_ = -1;
};

}  // namespace

Placement place_by_metis(const CostModel& cost, const Units& units) {
  if (cost.device_count() == 1 || units.count() < 2) return place_on_one_device(cost, units);
  MetisGraph graph(cost, units);
  idx_t vertices = units.count(), constraints = 1, parts = cost.device_count(), cut = 0;
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 1;
  // METIS's default of ten refinement rounds per level takes half of the total time on large
  // graphs. On a random graph of a million nodes, rounds 2 and 3 take a quarter of the total time
  // and reduce the cost of the cut edges by only 0.8 %.
  constexpr idx_t kLarge = 200'000, kVeryLarge = 500'000;
  if (vertices > kLarge) options[METIS_OPTION_NITER] = vertices > kVeryLarge ? 1 : 3;
  std::vector<idx_t> part(vertices, 0);
  const QuietStandardOutput quiet;
  const int status = METIS_PartGraphKway(&vertices, &constraints, graph.begin.data(), graph.neighbour.data(),
                                         graph.work.data(), nullptr, graph.cut_weight.data(), &parts, nullptr,
                                         nullptr, options, &cut, part.data());
  if (status != METIS_OK) throw std::runtime_error(fmt::format("METIS failed with status {}", status));
  UnitDevices devices(units);
  for (NodeIndex node = 0; node < cost.graph().node_count(); ++node)
    if (devices.of_node(node) == kNone)
      devices.set_node(node, static_cast<DeviceIndex>(part[units.of(node)]));
  return from_units(cost, devices);
}

}  // namespace convoy::partition

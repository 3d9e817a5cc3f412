// Proves that a graph cannot fit into the memory of a machine.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "partition/memory/overflow.h"

namespace convoy::partition {
namespace {

// The bytes that any device needs to run a node: the parameters of its unit, its inputs and its
// output.
struct Need {
  Bytes resident = 0, inputs = 0, output = 0;
  Bytes total() const { return resident + inputs + output; }
};

class Prover {
 public:
  Prover(const CostModel& cost, const Units& units)
      : cost_(cost), graph_(cost.graph()), machine_(cost.machine()), units_(units) {
    unit_resident_.assign(units.count(), 0);
    for (NodeIndex node = 0; node < graph_.node_count(); ++node)
      unit_resident_[units.of(node)] += graph_.resident_bytes(node);
    for (DeviceIndex device = 0; device < machine_.device_count(); ++device) {
      const Bytes limit = machine_.device(device).memory_limit;
      largest_limit_ = std::max(largest_limit_, limit);
      all_limits_ = limit > kUnlimited - all_limits_ ? kUnlimited : all_limits_ + limit;
    }
  }

  Bytes floor() const {
    const DeviceIndex devices = machine_.device_count();
    Bytes floor = (graph_.total_resident_bytes() + devices - 1) / devices;
    for (NodeIndex node = 0; node < graph_.node_count(); ++node)
      floor = std::max(floor, need_of(node).total());
    return floor;
  }

  std::optional<std::string> prove() const {
    if (auto proof = total()) return proof;
    if (auto proof = divided()) return proof;
    if (auto proof = single_node()) return proof;
    if (auto proof = pinned()) return proof;
    return halves();
  }

 private:
  std::optional<std::string> total() const {
    if (graph_.total_resident_bytes() <= all_limits_) return std::nullopt;
    return fmt::format("all nodes together hold {} resident bytes, more than the {} bytes of {} devices",
                       graph_.total_resident_bytes(), all_limits_, machine_.device_count());
  }

  // If all sizes are multiples of one number, a device can be filled only up to such a multiple.
  // Returns a proof if the devices, with their limits rounded down accordingly, are too small
  // together.
  std::optional<std::string> divided() const {
    Bytes unit = 0, room = 0;
    for (const Bytes bytes : unit_resident_) unit = std::gcd(unit, bytes);
    if (unit <= 1 || all_limits_ == kUnlimited) return std::nullopt;
    for (DeviceIndex device = 0; device < machine_.device_count(); ++device)
      room += machine_.device(device).memory_limit / unit * unit;
    if (graph_.total_resident_bytes() <= room) return std::nullopt;
    return fmt::format(
        "all nodes together hold {} resident bytes, in multiples of {} bytes, of which {} devices take {} at "
        "most",
        graph_.total_resident_bytes(), unit, machine_.device_count(), room);
  }

  Need need_of(NodeIndex node) const {
    Need need{unit_resident_[units_.of(node)], 0, graph_.output_bytes(node)};
    // A node with no duration may free its inputs before it writes its output, so its inputs do not
    // count.
    for (DeviceIndex device = 0; device < machine_.device_count(); ++device)
      if (cost_.run_time(node, device) == 0) return need;
    for (const EdgeIndex edge : graph_.in_edges(node))
      need.inputs += std::min(graph_.bytes(edge), graph_.output_bytes(graph_.source(edge)));
    return need;
  }

  std::optional<std::string> single_node() const {
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      const Need need = need_of(node);
      const DeviceIndex pin = units_.pin(units_.of(node));
      const Bytes limit = pin == kNone ? largest_limit_ : machine_.device(pin).memory_limit;
      if (need.total() <= limit) continue;
      return fmt::format(
          "node {} alone needs {} bytes ({} resident{}, {} of inputs, {} of output), more than the {} bytes "
          "of {}",
          graph_.label(node), need.total(), need.resident,
          graph_.group(node) == kNone ? "" : " with its colocation group", need.inputs, need.output, limit,
          pin == kNone ? std::string("the largest device") : fmt::format("device {}, its pin", pin));
    }
    return std::nullopt;
  }

  std::optional<std::string> pinned() const {
    std::vector<Bytes> sum(machine_.device_count(), 0);
    for (std::int32_t unit = 0; unit < units_.count(); ++unit)
      if (units_.pin(unit) != kNone) sum[units_.pin(unit)] += unit_resident_[unit];
    for (DeviceIndex device = 0; device < machine_.device_count(); ++device)
      if (sum[device] > machine_.device(device).memory_limit)
        return fmt::format("the nodes pinned to device {} hold {} resident bytes, more than its {}", device,
                           sum[device], machine_.device(device).memory_limit);
    return std::nullopt;
  }

  // A unit is a node or a colocation group, which stays on one device. On K devices, at least two
  // of any K + 1 units share a device. So if no two of the K + 1 largest units fit on one device,
  // no placement fits.
  std::optional<std::string> halves() const {
    const auto devices = static_cast<std::size_t>(machine_.device_count());
    if (static_cast<std::size_t>(units_.count()) <= devices) return std::nullopt;
    std::vector<Bytes> sizes = unit_resident_;
    std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(devices), sizes.end(),
                     std::greater<>());
    const Bytes smallest = sizes[devices];
    const Bytes second =
        *std::min_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(devices));
    if (smallest <= largest_limit_ - second) return std::nullopt;
    return fmt::format(
        "two of the {} largest nodes or groups must share a device, and the smallest two hold {} resident "
        "bytes, more than {}",
        devices + 1, smallest + second, largest_limit_);
  }

  const CostModel& cost_;
  const TaskGraph& graph_;
  const Machine& machine_;
  const Units& units_;
  std::vector<Bytes> unit_resident_;
  Bytes largest_limit_ = 0, all_limits_ = 0;
};

}  // namespace

std::optional<std::string> infeasibility_certificate(const CostModel& cost, const Units& units) {
  return Prover(cost, units).prove();
}

Bytes memory_floor(const CostModel& cost, const Units& units) { return Prover(cost, units).floor(); }

}  // namespace convoy::partition

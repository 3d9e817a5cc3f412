#include "partition/simulation/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "partition/graph/brief.h"
#include "partition/graph/parse_json.h"

namespace convoy::partition {
namespace {

using Json = nlohmann::json;

class TopologyReader {
 public:
  TopologyReader(std::string_view text, const std::string& where, DeviceIndex devices)
      : where_(where), devices_(devices) {
    document_ = parse_json(text, [&](const std::string& what) { fail(what); });
    if (!document_.is_object()) fail("expected an object");
  }

  Machine read() { return document_.contains("devices") ? matrix() : cluster(); }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(fmt::format("{}: {}", where_, what));
  }
  const Json& member(const Json& object, const char* field) const {
    if (!object.is_object() || !object.contains(field)) fail(fmt::format("field {} is missing", field));
    return object[field];
  }
  double number(const Json& value, const std::string& field, double least, bool above) const {
    constexpr double kMost = 1e15;
    if (!value.is_number() || value.get<double>() < least || (above && value.get<double>() == least) ||
        value.get<double>() > kMost)
      fail(fmt::format("{} is {}, expected a number {} {}", field, brief(value.dump()),
                       above ? "above" : "from", least));
    return value.get<double>();
  }
  std::string text(const Json& value, const char* field) const {
    if (!value.is_string()) fail(fmt::format("{} is {}, expected text", field, brief(value.dump())));
    return value.get<std::string>();
  }
  double number_or(const Json& object, const char* field, double otherwise) const {
    return object.contains(field) ? number(object[field], field, 0, true) : otherwise;
  }
  void check_fields(const Json& object, std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : object.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        fail(fmt::format("unknown field {}", brief(key)));
  }

  Machine matrix() const {
    check_fields(document_, {"name", "source", "devices", "latency_us", "gbytes_per_second"});
    const Json& kinds = member(document_, "devices");
    if (!kinds.is_array() || kinds.empty()) fail("devices is no list of devices");
    std::vector<Device> devices;
    for (const Json& kind : kinds) {
      if (!kind.is_object()) fail(fmt::format("devices: {} is no object", brief(kind.dump())));
      check_fields(kind, {"name", "count", "speed", "memory_bytes"});
      Device device;
      device.speed = number_or(kind, "speed", 1);
      if (kind.contains("name")) device.kind = text(kind["name"], "name");
      if (kind.contains("memory_bytes"))
        device.memory_limit = static_cast<Bytes>(number_or(kind, "memory_bytes", 1));
      const double count = number_or(kind, "count", 1);
      if (count != std::floor(count) || count + static_cast<double>(devices.size()) > kMostDevices)
        fail(fmt::format("count is {}, expected a whole number, {} devices at most", count, kMostDevices));
      devices.insert(devices.end(), static_cast<std::size_t>(count), device);
    }
    const auto count = static_cast<DeviceIndex>(devices.size());
    if (devices_ > 0 && devices_ != count) fail(fmt::format("has {} devices, expected {}", count, devices_));
    std::vector<Link> links(devices.size() * devices.size());
    for (DeviceIndex from = 0; from < count; ++from)
      for (DeviceIndex to = 0; to < count; ++to) {
        if (from == to) continue;
        links[from * count + to] = {
            static_cast<Nanoseconds>(entry("latency_us", from, to, count, false) * 1e3 + 0.5),
            entry("gbytes_per_second", from, to, count, true)};
      }
    return Machine::of(std::move(devices), std::move(links));
  }

  double entry(const char* field, DeviceIndex from, DeviceIndex to, DeviceIndex count, bool above) const {
    const Json& value = member(document_, field);
    if (!value.is_array()) return number(value, field, 0, above);
    const auto size = static_cast<std::size_t>(count);
    if (value.size() != size || !value[from].is_array() || value[from].size() != size)
      fail(fmt::format("{} is no matrix of {} rows and columns", field, count));
    return number(value[from][to], fmt::format("{}[{}][{}]", field, from, to), 0, above);
  }

  Link link(const char* field) const {
    const Json& object = member(document_, field);
    return {
        static_cast<Nanoseconds>(number(member(object, "latency_us"), "latency_us", 0, false) * 1e3 + 0.5),
        number(member(object, "gbytes_per_second"), "gbytes_per_second", 0, true)};
  }

  Machine cluster() const {
    const double given = number(member(document_, "devices_per_node"), "devices_per_node", 0, true);
    if (given != std::floor(given) || given > kMostDevices)
      fail(fmt::format("devices_per_node is {}, expected a whole number up to {}", given, kMostDevices));
    const auto per_node = static_cast<DeviceIndex>(given);
    if (devices_ == 0) fail("gives no number of devices, expected --devices");
    if (devices_ > per_node && devices_ % per_node != 0)
      fail(fmt::format("devices_per_node is {}, expected a divisor of the {} devices", per_node, devices_));
    const Link between = link("between_nodes");
    const Link within = per_node > 1 ? link("within_node") : between;
    if (devices_ <= per_node) return Machine::uniform(devices_, within);
    return Machine::cluster(devices_ / per_node, per_node, within, between);
  }

  const std::string& where_;
  const DeviceIndex devices_;
  Json document_;
};

}  // namespace

Machine parse_topology(std::string_view text, const std::string& where, DeviceIndex devices) {
  return TopologyReader(text, where, devices).read();
}

}  // namespace convoy::partition

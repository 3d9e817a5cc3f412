#include "partition/graph/piper.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "partition/graph/brief.h"
#include "partition/graph/parse_json.h"

namespace convoy::partition {
namespace {

using Json = nlohmann::json;

class PiperReader {
 public:
  PiperReader(std::string_view text, const std::string& where) : builder_(where) {
    document_ = parse_json(text, [&](const std::string& what) { fail(what); });
    if (!document_.is_object()) fail("expected an object of Piper's");
  }

  TaskGraph read() {
    constexpr double kMostBytes = 9e15, kMostDevices = 4096, kMostBatches = 1 << 20;
    const auto positive = [&](const char* field, double most) {
      if (!document_.contains(field)) fail(fmt::format("{} is missing", field));
      const double value = number(document_, field, "the file");
      if (!(value > 0 && value <= most))
        fail(fmt::format("{} is {}, expected above 0 and up to {}", field, value, most));
      return value;
    };
    builder_.set_device_memory(static_cast<Bytes>(positive("maxMemoryPerDevice", kMostBytes)));
    builder_.set_device_count(
        static_cast<std::int32_t>(whole("maxDevices", positive("maxDevices", kMostDevices))));
    builder_.set_bytes_per_ns(positive("bandwidth", 1e18) / 1e9);
    builder_.set_micro_batches(
        static_cast<std::int64_t>(whole("mbsInBatch", positive("mbsInBatch", kMostBatches))));
    for (const Json& node : list("nodes")) add_node(node);
    for (const Json& edge : list("edges")) {
      const std::string what =
          fmt::format("edge {} -> {}", id(edge, "sourceId", "edge"), id(edge, "destId", "edge"));
      builder_.add_edge(id(edge, "sourceId", what), id(edge, "destId", what),
                        bytes(edge, "communicationCost", what));
    }
    return builder_.build();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { builder_.fail(kNone, what); }

  // Adds a node. For each node Piper lists several ways to run it, which differ in time and memory.
  // This function uses the first way in the list for a single device. A node that runs this way
  // keeps its activations in memory.
  void add_node(const Json& node) {
    TaskNode task;
    task.id = id(node, "id", "node");
    const std::string what = fmt::format("node {}", task.id);
    if (node.contains("name") && node["name"].is_string()) task.name = node["name"];
    const Json& ways = member(node, "TMPCs", what);
    if (!ways.is_object() || !ways.contains("1") || !ways["1"].is_array() || ways["1"].empty())
      fail(fmt::format("{}: TMPCs has no list \"1\", of ways to run it on one device", what));
    const Json& way = ways["1"][0];
    const double seconds = number(way, "timePerSample", what);
    if (!(seconds >= 0 && seconds < 9e6))
      fail(fmt::format("{}: timePerSample is {}, expected 0 or more and below 104 days", what, seconds));
    task.time = std::llround(seconds * 1e9);
    task.parameter_bytes = bytes(way, "parameterSize", what);
    task.resident_bytes = bytes(way, "memoryUsageB", what);
    task.output_bytes = bytes(way, "memoryUsageA", what);
    builder_.add_node(task);
  }

  const Json& member(const Json& object, const char* field, const std::string& what) const {
    if (!object.is_object() || !object.contains(field)) fail(fmt::format("{}: {} is missing", what, field));
    return object[field];
  }
  double number(const Json& object, const char* field, const std::string& what) const {
    const Json& value = member(object, field, what);
    if (!value.is_number())
      fail(fmt::format("{}: {} is {}, expected a number", what, field, brief(value.dump())));
    return value.get<double>();
  }
  double whole(const char* field, double value) const {
    if (value != std::floor(value)) fail(fmt::format("{} is {}, expected a whole number", field, value));
    return value;
  }
  std::int64_t id(const Json& object, const char* field, const std::string& what) const {
    const Json& value = member(object, field, what);
    if (!value.is_number_integer())
      fail(fmt::format("{}: {} is {}, expected a whole number", what, field, brief(value.dump())));
    return value.get<std::int64_t>();
  }
  Bytes bytes(const Json& object, const char* field, const std::string& what) const {
    const double value = number(object, field, what);
    if (!(value >= 0 && value < 9e15))
      fail(fmt::format("{}: {} is {}, expected 0 or more and below 9e15", what, field, value));
    return static_cast<Bytes>(std::ceil(value));
  }
  const Json& list(const char* field) const {
    if (!document_.contains(field) || !document_[field].is_array()) fail(fmt::format("{} is no list", field));
    return document_[field];
  }

  TaskGraphBuilder builder_;
  Json document_;
};

}  // namespace

TaskGraph parse_piper_input(std::string_view text, const std::string& where) {
  return PiperReader(text, where).read();
}

}  // namespace convoy::partition

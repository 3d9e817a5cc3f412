#include "app/prediction/step_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "app/graph/graph_builder.h"
#include "app/graph/passes/fusions.h"

namespace convoy::app {
namespace {

using Json = nlohmann::json;

constexpr double kMostMilliseconds = 1e9;  // limit on the time of a step or an operation

// The layers of the update in a profile (ProgramBuilder), which are no layers of a network.
constexpr std::string_view kUpdateLayers[] = {"parameters", "gradients"};

TimedOperation timed(std::string layer, std::string kind, double ms, bool update) {
  return {std::move(layer), std::move(kind), ms, !update, update};
}

// Reads the fields of one line of a profile. Its errors name the file and the field.
class Row {
 public:
  Row(const std::string& line, const std::string& file)
      : line_(line), file_(file), json_(Json::parse(line, nullptr, false)) {
    if (!json_.is_object())
      throw std::runtime_error(fmt::format("{}: found '{:.40}', expected JSON", file, line));
  }
  template <typename Value>
  Value field(const char* key) const {
    try {
      return json_.at(key).get<Value>();
    } catch (const Json::exception&) {
      throw std::runtime_error(fmt::format(
          "{}: no \"{}\" of its kind in '{:.60}'; expected the output of bench step --layers --json", file_,
          key, line_));
    }
  }
  template <typename Value>
  Value number(const char* key, Value least, Value most) const {
    const auto value = field<Value>(key);
    if (!(value >= least && value <= most))
      throw std::runtime_error(
          fmt::format("{}: {}: found {}, expected {} to {}", file_, key, value, least, most));
    return value;
  }
  template <NamedChoice Enum>
  Enum choice(const char* key) const {
    const auto name = field<std::string>(key);
    const auto value = find_choice<Enum>(name);
    if (!value)
      throw std::runtime_error(fmt::format("{}: {}: found '{:.40}', expected one of {}", file_, key, name,
                                           fmt::join(names_of<Enum>(), ", ")));
    return *value;
  }

 private:
  const std::string &line_, &file_;
  Json json_;
};

StepGraph training_graph(const Network& network) {
  GraphOptions options;
  options.synchronised_batch_norm = false;
  return build_step_graph(fuse(network), options);
}

double bytes_of(const StepGraph& graph, TensorId id, double activation_bytes) {
  const Tensor& tensor = graph.tensors[static_cast<std::size_t>(id)];
  if (tensor.dtype == kernels::DType::u8)  // a mask has one bit per element
    return static_cast<double>(tensor.shape.elements()) / 8;
  const double element =
      tensor.role == TensorRole::activation || tensor.role == TensorRole::images ? activation_bytes : 4.0;
  return element * static_cast<double>(tensor.shape.elements());
}

// Returns the time of operation `i` at a batch size, on the line through its times at two measured
// batch sizes. Returns at least a tenth of the smaller time, because the line may fall below zero.
double interpolated(const StepProfile& low, const StepProfile& high, std::size_t i, std::int64_t batch) {
  const double t0 = low.operations[i].ms, t1 = high.operations[i].ms;
  const double share = static_cast<double>(batch - low.batch) / static_cast<double>(high.batch - low.batch);
  return std::max(t0 + share * (t1 - t0), 0.1 * std::min(t0, t1));
}

}  // namespace

double StepProfile::ms() const {
  double sum = 0;
  for (const TimedOperation& operation : operations) sum += operation.ms;
  return sum;
}

double StepProfile::typical_operation_ms() const {
  double squares = 0;
  for (const TimedOperation& operation : operations) squares += operation.ms * operation.ms;
  return squares > 0 ? squares / ms() : 0;
}

StepProfile read_profile(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error(fmt::format("{}: cannot be opened", file));
  StepProfile profile;
  double step_ms = 0, update_ms = 0;
  for (std::string line; std::getline(stream, line);) {
    const Row row(line, file);
    if (profile.batch == 0) {
      profile.model = row.field<std::string>("model");
      profile.precision = row.choice<Precision>("precision");
      profile.backend = row.choice<kernels::Backend>("backend");
      profile.batch = row.number<std::int64_t>("batch", 1, 1 << 24);
      profile.size = row.number<std::int64_t>("size", 1, 1 << 14);
      // Use the mean, not the median: the time of a training is the sum of all its steps.
      step_ms = row.number<double>("ms_mean", 0, kMostMilliseconds);
      if (const int ranks = row.field<int>("ranks"); ranks != 1)
        throw std::runtime_error(fmt::format("{}: ranks: found {}, expected a profile of 1", file, ranks));
    } else if (const auto layer = row.field<std::string>("layer"); layer != "all") {
      const auto kind = row.field<std::string>("op");
      const double ms = row.number<double>("ms", 0, kMostMilliseconds);
      // One rank alone updates large parameters inside backward. Several ranks update all
      // parameters together, after the sums of the gradients.
      if (kind == OptimizerUpdate::kName)
        update_ms += ms;
      else
        profile.operations.push_back(
            timed(layer, kind, ms, std::ranges::find(kUpdateLayers, layer) != std::end(kUpdateLayers)));
    }
  }
  if (update_ms > 0)
    profile.operations.push_back(timed("parameters", std::string(OptimizerUpdate::kName), update_ms, true));
  const double sum = profile.ms();
  if (sum <= 0)
    throw std::runtime_error(fmt::format("{}: no operations; measure with bench step --layers --json", file));
  for (TimedOperation& operation : profile.operations) operation.ms *= step_ms / sum;
  profile.measured = true;
  return profile;
}

bool has_norm_inputs(const StepProfile& profile) {
  return std::ranges::count(profile.operations, BatchNormAffine::kName, &TimedOperation::kind) > 0;
}

StepGraph predicted_graph(const Network& network, Precision precision, const DeviceRates& device,
                          bool norm_inputs) {
  StepGraph graph = training_graph(network);
  // Fuse operations as a session does on a Hopper GPU.
  if (device.backend == kernels::Backend::cuda)
    fuse_for_gpu(graph, precision != Precision::fp32,
                 norm_inputs ? std::optional(NormInputRule{}) : std::nullopt);
  return graph;
}

StepProfile estimate_profile(const Network& network, Precision precision, const DeviceRates& device) {
  const auto rate = device.gflops.find(precision);
  if (rate == device.gflops.end()) {
    std::vector<std::string> known;
    for (const auto& [other, gflops] : device.gflops) known.push_back(name_of(other));
    throw std::runtime_error(fmt::format("--precision {}: the topology's device.gflops has {} alone",
                                         name_of(precision), fmt::join(known, ", ")));
  }
  const StepGraph graph = predicted_graph(network, precision, device, precision == Precision::bf16);
  const double activation_bytes = precision == Precision::bf16 ? 2 : 4;
  StepProfile profile;
  profile.model = network.name(), profile.precision = precision, profile.backend = device.backend;
  profile.batch = network.shape(network.input())[0], profile.size = network.shape(network.input())[2];
  const auto milliseconds = [&](double flops, double bytes) {
    const double us = std::max(flops / rate->second, bytes / device.gbytes_per_second) * 1e-3;
    return std::max(us, device.launch_us) * 1e-3;
  };
  for (const Node& node : graph.nodes) {
    double bytes = 0;
    for (const auto* operands : {&node.inputs, &node.outputs})
      for (const TensorId id : *operands) bytes += bytes_of(graph, id, activation_bytes);
    profile.operations.push_back(
        timed(node.layer, std::string(node.name()), milliseconds(node.flops, bytes), false));
  }
  // SGD with momentum reads parameters, gradients and momentum, and writes parameters and momentum.
  const double update_bytes = 5.0 * 4 * static_cast<double>(network.parameter_count());
  profile.operations.push_back(timed("parameters", "optimizer_update", milliseconds(0, update_bytes), true));
  return profile;
}

// Returns whether two operations, at the same position in two profiles, are of the same node.
// Whether a convolution computes a batch norm depends on the batch.
static bool are_of_one_node(const TimedOperation& a, const TimedOperation& b) {
  const auto kind = [](const TimedOperation& operation) {
    return operation.kind == BatchNormAffine::kName ? BatchNormForward::kName
                                                    : std::string_view(operation.kind);
  };
  return a.layer == b.layer && kind(a) == kind(b);
}

StepProfile at_batch(const std::vector<StepProfile>& profiles, std::int64_t batch, double launch_us) {
  std::vector<StepProfile> sorted = profiles;
  std::ranges::sort(sorted, {}, &StepProfile::batch);
  for (const StepProfile& other : sorted)
    if (other.model != sorted[0].model || other.precision != sorted[0].precision ||
        !std::ranges::equal(other.operations, sorted[0].operations, are_of_one_node))
      throw std::runtime_error(
          fmt::format("--profile: those of batch {} and {} are not of the same network and precision",
                      sorted[0].batch, other.batch));
  const auto upper = std::ranges::lower_bound(sorted, batch, {}, &StepProfile::batch);
  const StepProfile& nearest = upper == sorted.end() ? sorted.back() : *upper;
  StepProfile result = nearest;
  result.batch = batch;
  const bool between = upper != sorted.end() && upper != sorted.begin() && nearest.batch != batch;
  const double ratio = static_cast<double>(batch) / static_cast<double>(nearest.batch);
  for (std::size_t i = 0; i < result.operations.size(); ++i) {
    TimedOperation& operation = result.operations[i];
    const double least = std::min(operation.ms, launch_us * 1e-3);
    if (between)
      operation.ms = interpolated(*(upper - 1), nearest, i, batch);
    else if (operation.per_sample)
      operation.ms = least + (operation.ms - least) * ratio;
  }
  return result;
}

std::vector<TimedBucket> buckets_of(const Network& network, const StepProfile& profile,
                                    const comm::BucketSizes& sizes) {
  StepGraph graph = training_graph(network);
  if (std::ranges::count(profile.operations, BatchNormBackwardReduce::kName, &TimedOperation::kind) <
      std::ranges::count_if(graph.nodes, &Node::is<BatchNormBackwardReduce>))
    fuse_norm_gradients(graph);  // the profiled session ran this pass, too
  std::vector<comm::BucketSegment> segments;
  // For each segment, the index of the operation in the profile that computes its gradient.
  std::vector<std::size_t> ready;
  std::int64_t offset = 0;
  for (const int index : graph.parameters_by_gradient()) {
    const GraphParameter& parameter = graph.parameters[static_cast<std::size_t>(index)];
    segments.push_back({offset, parameter.spec.shape.elements()});
    offset += parameter.spec.shape.elements();
    const auto node = std::ranges::find_if(graph.nodes, [&](const Node& n) {
      return std::ranges::find(n.outputs, parameter.gradient) != n.outputs.end();
    });
    std::size_t exact = 0, of_layer = 0;
    for (std::size_t i = 0; i < profile.operations.size(); ++i) {
      if (profile.operations[i].layer != node->layer) continue;
      of_layer = i;
      if (profile.operations[i].kind == node->name()) exact = i;
    }
    if (of_layer == 0)
      throw std::runtime_error(
          fmt::format("the profile has no layer '{}' of {}: it is of another network or an older build",
                      node->layer, network.name()));
    ready.push_back(exact > 0 ? exact : of_layer);
  }
  std::vector<TimedBucket> buckets;
  std::size_t latest = 0;
  for (const comm::Bucket& bucket : comm::plan_buckets(segments, sizeof(float), sizes)) {
    // Buckets are summed in order, so a bucket starts no earlier than the previous one.
    for (int s = bucket.first_segment; s <= bucket.last_segment; ++s)
      latest = std::max(latest, ready[static_cast<std::size_t>(s)]);
    buckets.push_back({static_cast<double>(bucket.count) * sizeof(float), latest});
  }
  return buckets;
}

}  // namespace convoy::app

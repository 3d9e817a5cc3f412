#include "app/commands/info_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/compile/fit_memory.h"
#include "app/timing/limited_steps.h"
#include "app/training/report/configuration_table.h"
#include "comm/single_rank.h"
#include "data/atomic_file.h"

namespace convoy::app {
namespace {

// The curve divides the range from the least possible memory to the memory of a step without a
// limit into this many equal steps.
constexpr int kSteps = 16;

MemoryCurvePoint point_of(const CompiledGraph& step, std::int64_t bytes, int slices, double ms) {
  // Count an operation once, not for every slice of the batch.
  const auto recomputed = std::ranges::count_if(
      step.graph.nodes, [](const Node& node) { return node.recompute && node.slice <= 0; });
  return {bytes, kept_bytes(step), static_cast<int>(recomputed), slices, step.host_bytes, ms};
}

double more(const MemoryCurve& curve, const MemoryCurvePoint& point) {
  return 100 * (point.ms / std::max(curve.points[0].ms, 1e-9) - 1);
}

double share(const MemoryCurve& curve, const MemoryCurvePoint& point) {
  return 100 * static_cast<double>(point.bytes) / static_cast<double>(curve.points[0].bytes);
}

}  // namespace

MemoryCurve memory_curve(const Network& network, const StepOptions& options) {
  comm::SingleRank rank;
  CompiledSteps steps = compile_steps(network, options, {&rank, &rank, nullptr});
  const std::vector<double> node_ms = node_ms_of(steps, options, {&rank, &rank, nullptr});
  double ms = 0;
  for (const double each : node_ms) ms += each;
  steps.train = assign_buffers(steps.train->graph, steps.train->descs, steps.train->kernels);
  const MemoryFitter fitter(steps, options, {}, node_ms, host_link_of(options));
  const std::int64_t most = fitter.unlimited_bytes();
  MemoryCurve curve;
  curve.points.push_back(point_of(*steps.train, most, 1, ms));
  const MemoryFitter::Fitted least = fitter.least();
  for (int step = kSteps - 1; step > 0; --step) {
    const auto fitted = fitter.within(least.bytes + (most - least.bytes) / kSteps * step);
    if (fitted && fitted->bytes < curve.points.back().bytes)
      curve.points.push_back(point_of(fitted->train, fitted->bytes, fitted->slices, ms + fitted->more_ms));
  }
  if (least.bytes < curve.points.back().bytes)
    curve.points.push_back(point_of(least.train, least.bytes, least.slices, ms + least.more_ms));
  const Node& node = least.train.graph.nodes[static_cast<std::size_t>(least.neediest)];
  curve.least_at = fmt::format("{} of {}", node.name(), node.layer);
  return curve;
}

std::string draw_memory_curve(const MemoryCurve& curve, const std::string& title) {
  constexpr double kWidth = 640, kHeight = 400, kLeft = 70, kRight = 20, kTop = 40, kBottom = 50;
  double most = 1;
  for (const MemoryCurvePoint& point : curve.points) most = std::max(most, more(curve, point));
  const auto x = [&](double percent) { return kLeft + percent / 100 * (kWidth - kLeft - kRight); };
  const auto y = [&](double percent) {
    return kHeight - kBottom - percent / most * (kHeight - kTop - kBottom);
  };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"24\" font-size=\"15\">{3}</text>\n",
      kWidth, kHeight, kLeft, title);
  for (int tick = 0; tick <= 5; ++tick) {
    const double bytes = 20.0 * tick, time = most * tick / 5;
    svg += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}M{3:.1f} {4:.1f}H{5:.1f}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{6:.1f}\" text-anchor=\"middle\">{7:.0f} %</text>\n"
        "<text x=\"{8:.1f}\" y=\"{9:.1f}\" text-anchor=\"end\">+{10:.3g} %</text>\n",
        x(bytes), y(0), y(most), x(0), y(time), x(100), y(0) + 18, bytes, x(0) - 6, y(time) + 4, time);
  }
  svg += "<polyline fill=\"none\" stroke=\"#1f5fa8\" stroke-width=\"2\" points=\"";
  for (const MemoryCurvePoint& point : curve.points)
    svg += fmt::format("{:.1f},{:.1f} ", x(share(curve, point)), y(more(curve, point)));
  svg += "\"/>\n";
  for (const MemoryCurvePoint& point : curve.points)
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"#1f5fa8\"><title>{}, +{:.1f} "
        "%</title></circle>\n",
        x(share(curve, point)), y(more(curve, point)), format_bytes(static_cast<std::uint64_t>(point.bytes)),
        more(curve, point));
  return svg + fmt::format(
                   "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">memory, of {}</text>\n"
                   "<text transform=\"translate(16 {:.1f}) rotate(-90)\" text-anchor=\"middle\">expected "
                   "time</text>\n</svg>\n",
                   x(50), kHeight - 10, format_bytes(static_cast<std::uint64_t>(curve.points[0].bytes)),
                   y(most / 2));
}

void print_memory(const Network& network, const StepOptions& options, bool json, const std::string& plot) {
  const MemoryCurve curve = memory_curve(network, options);
  if (!plot.empty()) {
    const std::string title = fmt::format("{}, batch {}", network.name(), network.shape(network.input())[0]);
    data::write_file_atomically(plot, draw_memory_curve(curve, title));
  }
  if (json) {
    auto points = nlohmann::json::array();
    for (const MemoryCurvePoint& point : curve.points)
      points.push_back({{"bytes", point.bytes},
                        {"kept_bytes", point.kept_bytes},
                        {"recomputed", point.recomputed},
                        {"slices", point.slices},
                        {"host_bytes", point.host_bytes},
                        {"expected_ms", point.ms}});
    return fmt::print("{}\n", nlohmann::json({{"model", network.name()},
                                              {"batch", network.shape(network.input())[0]},
                                              {"points", points},
                                              {"least_at", curve.least_at}})
                                  .dump());
  }
  fmt::print("{:>12}  {:>7}  {:>12}  {:>10}  {:>6}  {:>12}  {:>8}\n", "memory", "of all", "kept",
             "recomputed", "slices", "on the host", "time");
  for (const MemoryCurvePoint& point : curve.points)
    fmt::print("{:>12}  {:>5.1f} %  {:>12}  {:>10}  {:>6}  {:>12}  {:>+6.1f} %\n",
               format_bytes(static_cast<std::uint64_t>(point.bytes)), share(curve, point),
               format_bytes(static_cast<std::uint64_t>(point.kept_bytes)), point.recomputed, point.slices,
               format_bytes(static_cast<std::uint64_t>(point.host_bytes)), more(curve, point));
  fmt::print(
      "\nmemory: what a rank reserves. kept: what forward leaves for backward. recomputed: operations that\n"
      "backward runs again. slices: of the batch, one after the other in the layers with the largest "
      "tensors.\n"
      "on the host: what waits in its memory meanwhile (--host-memory). time: of the operations and what "
      "they\n"
      "wait for copies, {}.\nThe last row is the least; {} needs it.\n",
      options.backend == kernels::Backend::cuda ? "measured" : "estimated", curve.least_at);
}

}  // namespace convoy::app

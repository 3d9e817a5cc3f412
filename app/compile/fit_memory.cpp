#include "app/compile/fit_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "app/compile/batch_slices.h"
#include "app/compile/memory_plan.h"
#include "app/compile/repeated_runs.h"
#include "kernels/device/gpu_model.h"

namespace convoy::app {
namespace {

// Rough operations and bytes per second of one host core. Only their ratio changes the plan.
constexpr double kHostOperations = 5e10, kHostBytes = 5e9;
// Bytes per second of the PCIe link between an H100 and its host.
constexpr double kPcieBytes = 5.3e10;
// Bytes of such copies that cost the operations beside them one millisecond
// (docs/results/memory.md).
constexpr double kSlowingBytesMs = 7e8;
// Milliseconds that a slice of an operation takes on a GPU in addition to its fraction of the time
// of the whole batch: each slice starts its own kernels, and some multiprocessors are idle while a
// kernel ends.
constexpr double kStartMs = 0.005;

std::size_t index(int at) { return static_cast<std::size_t>(at); }

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Assigns buffers without a reuse delay, so that a freed buffer can be reused at once.
CompiledGraph tight(const CompiledGraph& step) {
  return assign_buffers(step.graph, step.descs, step.kernels);
}

MemoryFit describe(const MemoryFitter::Fitted& fitted, const std::vector<double>& node_ms) {
  const CompiledGraph& step = fitted.train;
  MemoryFit fit;
  fit.fitted = true;
  fit.step_ms = std::accumulate(node_ms.begin(), node_ms.end(), 0.0);
  fit.repeated_ms = fitted.repeated_ms;
  fit.more_ms = fitted.more_ms;
  fit.host_bytes = step.host_bytes;
  fit.slices = fitted.slices;
  fit.sliced = fitted.sliced;
  for (const Node& node : step.graph.nodes) {
    if (node.slice > 0) continue;  // count an operation once, not for every slice of the batch
    if (node.is<HostCopy>()) {
      if (std::get<HostCopy>(node.op).action == HostCopy::Action::out_begin) ++fit.copied;
      continue;
    }
    if (node.phase == Phase::forward && !node.is<AllReduce>()) ++fit.forward_operations;
    if (node.recompute) ++fit.repeated[std::string(name_of(node.op))];
  }
  fit.kept_bytes = kept_bytes(step);
  return fit;
}

}  // namespace

std::int64_t kept_bytes(const CompiledGraph& step) {
  std::vector<char> forward(step.descs.size(), 0), counted(step.descs.size(), 0);
  std::int64_t bytes = 0;
  for (const Node& node : step.graph.nodes) {
    if (node.phase == Phase::forward)
      for (const TensorId id : node.outputs) forward[static_cast<std::size_t>(id)] = 1;
    if (node.phase == Phase::backward)
      for (const TensorId id : node.inputs) {
        const auto at = static_cast<std::size_t>(id);
        if (!forward[at] || step.graph.tensors[at].role != TensorRole::activation) continue;
        if (!std::exchange(counted[at], 1)) bytes += static_cast<std::int64_t>(step.descs[at].bytes());
      }
  }
  return bytes;
}

std::vector<double> estimated_node_ms(const CompiledGraph& step, const StepOptions& options) {
  const bool device = options.backend == kernels::Backend::cuda;
  const kernels::GpuModel& gpu = kernels::kReferenceGpu;
  const double operations = !device                                ? kHostOperations
                            : options.precision == Precision::bf16 ? gpu.operations_bf16
                            : options.precision == Precision::tf32 ? gpu.operations_tf32
                                                                   : gpu.operations_fp32;
  const double rate = device ? gpu.copied_bytes : kHostBytes;
  std::vector<double> ms;
  for (const Node& node : step.graph.nodes) {
    double bytes = 0;
    for (const auto* operands : {&node.inputs, &node.outputs})
      for (const TensorId id : *operands)
        bytes += static_cast<double>(step.descs[static_cast<std::size_t>(id)].bytes());
    const bool computes = !node.is<AllReduce>() && !node.is<Transfer>();
    ms.push_back(computes ? 1e3 * std::max(node.flops / operations, bytes / rate) : 0);
  }
  return ms;
}

double evaluated_batch_steps(const CompiledSteps& steps, const StepOptions& options) {
  const auto ms_of = [&](const CompiledGraph& step) {
    const std::vector<double> ms = estimated_node_ms(step, options);
    return std::accumulate(ms.begin(), ms.end(), 0.0);
  };
  return ms_of(steps.evaluate) / ms_of(*steps.train);
}

partition::HostLink estimated_link(const StepOptions& options) {
  partition::HostLink link;
  link.host_bytes = options.members.size() == 1 ? std::max<std::int64_t>(options.host_memory, 0) : 0;
  link.overlaps = options.backend == kernels::Backend::cuda;
  if (!link.overlaps) link.start_ms = 0;
  if (link.overlaps) link.slowing_bytes_ms = kSlowingBytesMs;
  link.out_bytes_ms = link.back_bytes_ms = (link.overlaps ? kPcieBytes : kHostBytes / 2) / 1e3;
  return link;
}

bool exceeds_limit(const CompiledSteps& steps, const StepOptions& options,
                   const comm::Collectives& replicas) {
  const auto scratch = [&](std::size_t bytes) { return replicas.scratch_bytes(bytes); };
  return options.memory_limit > 0 && steps.train &&
         MemoryPlan(steps, options, scratch).total() > options.memory_limit;
}

void fit_into_limit(CompiledSteps& steps, const StepOptions& options, const comm::Collectives& replicas,
                    const std::vector<double>& node_ms, const partition::HostLink& link) {
  if (!exceeds_limit(steps, options, replicas)) return;
  if (reuse_delay_of(options) > 0) {
    steps.evaluate = tight(steps.evaluate);
    steps.train = tight(*steps.train);
    if (!exceeds_limit(steps, options, replicas)) return;
  }
  const auto scratch = [&](std::size_t bytes) { return replicas.scratch_bytes(bytes); };
  const MemoryFitter fitter(steps, options, scratch, node_ms, link);
  const std::int64_t all_kept = kept_bytes(*steps.train);
  std::optional<MemoryFitter::Fitted> found = fitter.within(options.memory_limit);
  const bool fits = found.has_value();
  if (!fits) found = fitter.least();
  MemoryFit fit = describe(*found, node_ms);
  fit.all_kept_bytes = all_kept;
  fit.host_limit = link.host_bytes;
  if (!fits) {
    const Node& node = found->train.graph.nodes[static_cast<std::size_t>(found->neediest)];
    fit.least_bytes = found->bytes;
    fit.least_at = fmt::format("{} of {}", node.name(), node.layer);
  }
  steps.train = std::move(found->train);
  if (found->evaluate) steps.evaluate = std::move(*found->evaluate);
  steps.fit = std::move(fit);
}

MemoryFitter::MemoryFitter(const CompiledSteps& steps, const StepOptions& options,
                           std::function<std::size_t(std::size_t)> scratch,
                           const std::vector<double>& node_ms, const partition::HostLink& link)
    : steps_(steps), options_(options), members_(std::ssize(options.members)) {
  const MemoryPlan plan(steps, options, scratch);
  other_bytes_ = plan.total() - members_ * plan.bytes(Region::activations);
  variants_.push_back(std::unique_ptr<const Variant>(
      new Variant{*steps.train, steps.evaluate, 1, 0, {step_model(*steps.train, node_ms), link}}));
  add_slices(node_ms, link);
}

// Adds the variants with slices: half the batch, a quarter, and so on down to the smallest slices.
void MemoryFitter::add_slices(const std::vector<double>& node_ms, const partition::HostLink& link) {
  const SlicedLayers layers = layers_to_slice(*steps_.train);
  if (layers.names.empty()) return;
  const std::int64_t batch = steps_.train->graph.tensors[index(steps_.train->graph.labels)].shape[0];
  std::vector<std::int64_t> sizes;
  for (std::int64_t samples = layers.samples; samples < batch; samples *= 2)
    sizes.insert(sizes.begin(), samples);
  const double start_ms = options_.backend == kernels::Backend::cuda ? kStartMs : 0;
  for (const std::int64_t samples : sizes) {
    std::optional<SlicedStep> train = in_slices(*steps_.train, layers.names, samples, options_.backend);
    std::optional<SlicedStep> evaluate = in_slices(steps_.evaluate, layers.names, samples, options_.backend);
    if (!train || !evaluate) continue;
    std::vector<double> ms;
    double more = 0;
    for (std::size_t node = 0; node < train->origin.size(); ++node) {
      const double whole = node_ms[index(train->origin[node])];
      ms.push_back(whole * train->share[node] + (train->share[node] < 1 ? start_ms : 0));
      more += ms.back();
    }
    for (const double each : node_ms) more -= each;
    const int slices = static_cast<int>((batch + samples - 1) / samples);
    partition::StepModel model = step_model(train->step, ms);
    variants_.push_back(std::unique_ptr<const Variant>(new Variant{
        std::move(train->step), std::move(evaluate->step), slices, more, {std::move(model), link}}));
  }
  sliced_layers_.assign(layers.names.begin(), layers.names.end());
}

std::int64_t MemoryFitter::bytes_with(std::int64_t activation_bytes, const CompiledGraph& evaluate) const {
  const std::int64_t least =
      std::max(evaluate.activation_bytes, static_cast<std::int64_t>(steps_.update.workspace_bytes()));
  return other_bytes_ + members_ * round_up(std::max(activation_bytes, least), MemoryPlan::kPage);
}

MemoryFitter::Fitted MemoryFitter::fitted(const Variant& variant, const partition::StepPlan& plan,
                                          int reuse_delay, bool sliced_evaluation) const {
  Fitted result;
  result.train = with_schedule(variant.train, plan.schedule, options_.backend, reuse_delay);
  if (sliced_evaluation) result.evaluate = variant.evaluate;
  result.bytes =
      bytes_with(result.train.activation_bytes, sliced_evaluation ? variant.evaluate : steps_.evaluate);
  result.slices = variant.slices;
  if (variant.slices > 1) result.sliced = sliced_layers_;
  result.repeated_ms = plan.repeated_ms;
  result.more_ms = variant.more_ms + plan.more_ms;
  result.neediest = partition::neediest_run(variant.planner.model(), plan.schedule);
  return result;
}

std::optional<MemoryFitter::Fitted> MemoryFitter::within(std::int64_t limit) const {
  std::optional<Fitted> best;
  for (const auto& variant : variants_) {
    if (best && variant->more_ms >= best->more_ms) break;
    std::optional<Fitted> fitted = within(*variant, limit);
    if (fitted && (!best || fitted->more_ms < best->more_ms)) best = std::move(fitted);
  }
  return best;
}

std::optional<MemoryFitter::Fitted> MemoryFitter::within(const Variant& variant, std::int64_t limit) const {
  const bool sliced_evaluation = variant.slices > 1 && bytes_with(0, steps_.evaluate) > limit;
  if (bytes_with(0, sliced_evaluation ? variant.evaluate : steps_.evaluate) > limit) return std::nullopt;
  // The bytes that the activations of one member (one of the trainings) may take.
  const std::int64_t space = (limit - other_bytes_) / members_ / MemoryPlan::kPage * MemoryPlan::kPage;
  // The planner limits the bytes of the buffers that are in use. The arena also has gaps between
  // buffers. If the gaps make the arena too large, plan again with a lower limit.
  std::int64_t live = space;
  std::optional<partition::StepPlan> plan;
  for (int attempt = 0; attempt < 6 && live > 0; ++attempt) {
    std::optional<partition::StepPlan> next;
    if (plan) next = variant.planner.plan(live, plan->away);
    plan = next ? std::move(next) : variant.planner.plan(live);
    if (!plan) break;
    Fitted result = fitted(variant, *plan, 0, sliced_evaluation);
    if (result.bytes <= limit) {
      for (int delay = reuse_delay_of(options_); delay > 0; delay /= 2)
        if (Fitted apart = fitted(variant, *plan, delay, sliced_evaluation); apart.bytes <= limit)
          return apart;
      return result;
    }
    live = std::min(plan->live_bytes, live) - (result.bytes - limit + members_ - 1) / members_;
  }
  Fitted smallest = least(variant);
  if (smallest.bytes > limit) return std::nullopt;
  return smallest;
}

MemoryFitter::Fitted MemoryFitter::least() const {
  Fitted best = least(*variants_.front());
  for (std::size_t i = 1; i < variants_.size(); ++i)
    if (Fitted other = least(*variants_[i]); other.bytes < best.bytes) best = std::move(other);
  return best;
}

// Returns the smallest of several plans. Some of them have slightly more bytes in use than
// necessary: their arenas may have fewer gaps and so be smaller.
MemoryFitter::Fitted MemoryFitter::least(const Variant& variant) const {
  const partition::StepPlan plan = variant.planner.least();
  const bool slices = variant.slices > 1;
  Fitted best = fitted(variant, plan, 0, slices);
  for (int more = 1; more <= 4; ++more) {
    const auto other = variant.planner.plan(plan.live_bytes + plan.live_bytes / 200 * more, plan.away);
    if (!other) continue;
    if (Fitted candidate = fitted(variant, *other, 0, slices); candidate.bytes < best.bytes)
      best = std::move(candidate);
  }
  return best;
}

}  // namespace convoy::app

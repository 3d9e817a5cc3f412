#include "app/training/report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/execute/run_on_all_ranks.h"
#include "app/json_text.h"
#include "app/training/report/clock_offset.h"
#include "data/atomic_file.h"

namespace convoy::app {
namespace {

using Json = nlohmann::json;

enum Lane : int { kStepLane, kComputeLane, kCommunicationLane, kLoaderLane, kFurtherLanes };
constexpr const char* kLaneNames[] = {"steps", "compute", "communication (waits)", "loader (waits)"};

std::string lane_name(int lane) {
  return lane < kFurtherLanes ? kLaneNames[lane] : fmt::format("compute, lane {}", lane - kFurtherLanes + 2);
}
int compute_lane(int lane) { return lane == 0 ? int{kComputeLane} : kFurtherLanes + lane - 1; }
bool computes(int lane) { return lane == kComputeLane || lane >= kFurtherLanes; }
const std::string kLoader = "wait for the batch", kLoaderKind = "loader", kStepKind = "step",
                  kBucketKind = "bucket";

std::int64_t ns_of(Trace::Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

double micros(std::int64_t ns) { return static_cast<double>(ns) * 1e-3; }

std::string text(const Json& event) { return json_text(event); }

std::string metadata(const char* what, int rank, int lane, const std::string& name) {
  return text({{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", lane}, {"args", {{"name", name}}}});
}

}  // namespace

Trace::Trace(std::string file, Session& session, const comm::Communicator& ranks, std::int64_t first_step,
             std::int64_t total_steps)
    : file_(std::move(file)), tools_(session), ranks_(ranks), on_device_(session.steps_ahead() > 0) {
  const std::int64_t left = total_steps - first_step;
  first_ = first_step + std::clamp<std::int64_t>(left - kSteps, 0, kWarmup);
  last_ = std::min(first_ + kSteps, total_steps) - 1;
  for (std::int64_t step = first_; step <= last_; ++step)
    step_names_.push_back(fmt::format("step {}", step + 1));
  instrument();
}

void Trace::instrument() {
  const std::vector<Instruction>& instructions = tools_.programs().train.instructions();
  for (const Instruction& instruction : instructions) {
    layers_.push_back(instruction.layer), kinds_.push_back(instruction.kind);
    actions_.push_back(instruction.buckets), communicates_.push_back(instruction.communicates);
  }
  // Reserve memory for two events per instruction, the instruction itself and a sum of gradients
  // that it may start, so that traced steps allocate nothing.
  events_.reserve(static_cast<std::size_t>(kSteps) * (2 * instructions.size() + 2));
  open_buckets_.reserve(instructions.size());
  if (on_device_) return tools_.prepare_trace(static_cast<int>(step_names_.size()));
  tools_.programs().train.instrument([this](std::size_t index, const kernels::Launch& launch) {
    return [this, index, launch](kernels::Stream stream) {
      if (!active_) return launch(stream);
      const auto begin = Clock::now();
      launch(stream);
      operation(index, begin);
    };
  });
}

void Trace::begin_step(std::int64_t step) {
  active_ = step >= first_ && step <= last_;
  if (!active_) return;
  if (on_device_) {
    if (step == first_) tools_.begin_trace();
    return;
  }
  step_began_ = ns_of(Clock::now());
  events_.push_back(
      {step_began_, 0, &step_names_[static_cast<std::size_t>(step - first_)], &kStepKind, kStepLane});
}

void Trace::loaded(Clock::time_point since) {
  if (active_) events_.push_back({ns_of(since), ns_of(Clock::now()), &kLoader, &kLoaderKind, kLoaderLane});
}

void Trace::operation(std::size_t index, Clock::time_point began) {
  const std::int64_t begin = ns_of(began), end = ns_of(Clock::now());
  events_.push_back({begin, end, &layers_[index], &kinds_[index],
                     communicates_[index] ? kCommunicationLane : kComputeLane});
  if (actions_[index] == BucketAction::start) {
    open_buckets_.push_back(events_.size());
    events_.push_back({begin, 0, &layers_[index], &kBucketKind, kCommunicationLane,
                       static_cast<int>(open_buckets_.size()) - 1});
  }
  const auto finished = static_cast<std::size_t>(tools_.summed_buckets());
  close_buckets(actions_[index] == BucketAction::wait ? open_buckets_.size() : finished, end);
}

void Trace::close_buckets(std::size_t finished, std::int64_t now) {
  for (; closed_buckets_ < std::min(finished, open_buckets_.size()); ++closed_buckets_)
    events_[open_buckets_[closed_buckets_]].end = now;
}

// Converts the times that the device measured to events. An instruction that only starts a sum over
// the ranks becomes an event that lasts until the sum ends; it is drawn outside the lanes of
// operations.
void Trace::note_device_steps() {
  const auto& instructions = tools_.programs().train.instructions();
  const std::vector<TracedStep> steps = tools_.traced_steps();
  for (std::size_t n = 0; n < steps.size(); ++n) {
    Event whole{std::numeric_limits<std::int64_t>::max(), 0, &step_names_[n], &kStepKind, kStepLane};
    int buckets = 0;
    for (std::size_t i = 0; i < steps[n].size(); ++i) {
      const auto begin = static_cast<std::int64_t>(steps[n][i].time.begin);
      const auto end = std::max(begin, static_cast<std::int64_t>(steps[n][i].time.end));
      whole.begin = std::min(whole.begin, begin), whole.end = std::max(whole.end, end);
      if (instructions[i].follow)
        events_.push_back({begin, end, &layers_[i], &kBucketKind, kCommunicationLane,
                           actions_[i] == BucketAction::start ? buckets++ : Event::kMetricsSum});
      else
        events_.push_back(
            {begin, end, &layers_[i], &kinds_[i],
             instructions[i].communicates ? int{kCommunicationLane} : compute_lane(steps[n][i].lane)});
    }
    events_.push_back(whole);
  }
}

void Trace::end_step(std::int64_t step_number, const std::vector<RankPlace>& places) {
  if (on_device_) {
    if (step_number != last_) return;
    note_device_steps();
    return write(places);
  }
  if (!active_) return;
  const auto step = std::ranges::find(events_, step_began_, &Event::begin);
  step->end = ns_of(Clock::now());
  active_ = false;
  open_buckets_.clear();
  closed_buckets_ = 0;
  if (step->name == &step_names_.back()) write(places);
}

std::string Trace::serialize(std::int64_t offset_ns, const std::string& clock) const {
  const int rank = ranks_.rank();
  std::string lines;
  int last_lane = kLoaderLane;
  for (const Event& event : events_) last_lane = std::max(last_lane, event.lane);
  for (int lane = kStepLane; lane <= last_lane; ++lane)
    lines += metadata("thread_name", rank, lane, lane_name(lane)) + ",\n";
  lines += text({{"ph", "M"}, {"name", "clock"}, {"pid", rank}, {"tid", 0}, {"args", {{"offset", clock}}}}) +
           ",\n";
  for (const Event& event : events_) {
    Json json{
        {"pid", rank}, {"tid", event.lane}, {"ts", micros(event.begin - offset_ns)}, {"cat", *event.kind}};
    if (event.bucket == Event::kOperation) {
      json.update({{"ph", "X"}, {"dur", micros(event.end - event.begin)}});
      json["name"] = computes(event.lane) || event.lane == kCommunicationLane
                         ? *event.name + " " + *event.kind
                         : *event.name;
      if (computes(event.lane)) json["args"] = {{"layer", *event.name}, {"op", *event.kind}};
      lines += text(json) + ",\n";
      continue;
    }
    // Sums of gradient buckets overlap in time, so they become asynchronous events, which viewers
    // draw in separate rows.
    json["name"] = event.bucket == Event::kMetricsSum ? *event.name : fmt::format("bucket {}", event.bucket);
    json["id"] = fmt::format("{}.{}", rank, &event - events_.data());
    json["ph"] = "b", json["args"] = {{"after", *event.name}};
    lines += text(json) + ",\n";
    json["ph"] = "e", json["ts"] = micros(event.end - offset_ns), json.erase("args");
    lines += text(json) + ",\n";
  }
  return lines;
}

void Trace::write(const std::vector<RankPlace>& places) {
  const ClockOffset offset = measure_clock_offsets(ranks_)[static_cast<std::size_t>(ranks_.rank())];
  const std::string clock =
      fmt::format("{:.1f} us, within {:.1f} us", offset.ns * 1e-3, offset.error_ns * 1e-3);
  const auto parts = ranks_.gather(serialize(static_cast<std::int64_t>(offset.ns), clock), 0, "trace");
  run_on_all_ranks(ranks_, [&] {
    if (ranks_.rank() != 0) return;
    std::string file = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      file += metadata("process_name", static_cast<int>(rank), 0,
                       fmt::format("rank {} ({}, {})", rank, places[rank].host, places[rank].device)) +
              ",\n" + parts[rank];
    }
    file.erase(file.size() - 2);
    data::write_file_atomically(file_, file + "\n]}\n");
  });
}

}  // namespace convoy::app

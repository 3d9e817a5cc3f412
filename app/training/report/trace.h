// Implements `--trace FILE`, which writes a few steps of every rank as a Chrome trace
// (chrome://tracing, ui.perfetto.dev). All times are on the clock of rank 0. Each rank is a process
// with four threads:
//   - steps
//   - compute: one event per operation, with its layer and kind. On a GPU operations run in several
//     lanes at the same time (execute/lane_plan.h). Then each lane is a thread of the trace, and
//     the device measures the times.
//   - communication: waiting for other ranks
//   - loader
// Ranks sum gradients in buckets (comm/buckets.h). Each sum is an event that lasts from its start
// until the rank saw that it was finished.
//
// Operations are timed only during the traced steps, so other steps and runs without --trace have
// no cost. On a GPU the traced steps run as graphs of their own that take a time stamp before and
// after every operation, which costs a few microseconds each.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "app/execute/session.h"
#include "app/execute/session_tools.h"
#include "app/training/report/report.h"
#include "comm/communicator.h"

namespace convoy::app {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::int64_t kSteps = 3, kWarmup = 10;

  // Adds time measurements to the session's training program. `session` must outlive this object.
  // Steps count from 0. Collective.
  Trace(std::string file, Session& session, const comm::Communicator& ranks, std::int64_t first_step,
        std::int64_t total_steps);

  // Records that a step begins. On a device the next steps may begin before this one ends.
  void begin_step(std::int64_t step);
  // Records that a batch has arrived, for which the rank has waited since the time `since`.
  void loaded(Clock::time_point since);
  // Ends a step. After the last traced step, rank 0 writes the file with the events of all ranks;
  // this call is collective. `places` is the result of places_of().
  void end_step(std::int64_t step, const std::vector<RankPlace>& places);

 private:
  struct Event {
    std::int64_t begin, end;  // in nanoseconds of this rank's clock
    const std::string *name, *kind;
    int lane;
    // The number of the gradient bucket whose sum the event shows, or one of the values below.
    int bucket = kOperation;
    static constexpr int kOperation = -1, kMetricsSum = -2;
  };

  void instrument();
  void note_device_steps();
  void operation(std::size_t index, Clock::time_point begin);
  void close_buckets(std::size_t finished, std::int64_t now);
  std::string serialize(std::int64_t offset_ns, const std::string& clock) const;
  void write(const std::vector<RankPlace>& places);

  const std::string file_;
  SessionTools tools_;
  const comm::Communicator& ranks_;
  const bool on_device_;
  std::int64_t first_, last_;  // the first and the last traced step
  bool active_ = false;
  std::int64_t step_began_ = 0;
  // The texts that events point to, so they must not move.
  std::vector<std::string> step_names_, layers_, kinds_;
  // For each instruction of the step.
  std::vector<BucketAction> actions_;
  std::vector<bool> communicates_;
  std::vector<Event> events_;
  // The sums of buckets that this step has started, as indices into events_ in order of their
  // starts.
  std::vector<std::size_t> open_buckets_;
  std::size_t closed_buckets_ = 0;
};

}  // namespace convoy::app

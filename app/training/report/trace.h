// `--trace FILE` writes a few steps of every rank as a Chrome trace (chrome://tracing,
// ui.perfetto.dev) on rank 0's clock.
//
// Each rank is a process with the threads steps, compute (one event an operation: layer and kind),
// communication (waiting for other ranks) and loader. A gradient bucket is an event from its start
// until the rank saw it finished.
// Operations are timed during the traced steps only; a run without --trace has none of this. On a
// GPU each lane is a thread, timed by the device. Its traced steps are captured again with time
// stamps around every operation, which cost a few microseconds each.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "app/execute/session.h"
#include "app/training/report/report.h"
#include "comm/communicator.h"

namespace convoy::app {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::int64_t kSteps = 3, kWarmup = 10;

  // Instruments the session's training program. `session` must outlive this object. Steps count
  // from 0. Collective.
  Trace(std::string file, Session& session, const comm::Communicator& ranks, std::int64_t first_step,
        std::int64_t total_steps);

  void begin_step(std::int64_t step);    // several may have begun before the first of them ends
  void loaded(Clock::time_point since);  // a batch has arrived; the rank has waited for it since then
  // Writes the file on rank 0 if this is the last traced step; collective then. `places` is the
  // result of places_of.
  void end_step(std::int64_t step, const std::vector<RankPlace>& places);

 private:
  struct Event {
    std::int64_t begin, end;  // nanoseconds of this rank's clock
    const std::string *name, *kind;
    int lane;
    int bucket = -1;  // number of a bucket, which runs next to the lanes
  };

  void instrument();
  void note_device_steps();
  void operation(std::size_t index, Clock::time_point begin);
  void close_buckets(std::size_t finished, std::int64_t now);
  std::string serialize(std::int64_t offset_ns, const std::string& clock) const;
  void write(const std::vector<RankPlace>& places);

  const std::string file_;
  Session& session_;
  const comm::Communicator& ranks_;
  const bool on_device_;
  std::int64_t first_, last_;  // the traced steps, both included
  bool active_ = false;
  std::int64_t step_began_ = 0;
  std::vector<std::string> step_names_, layers_, kinds_;  // the events point into them
  std::vector<Event> events_;
  std::vector<std::size_t> open_buckets_;  // of this step, in starting order: indices into events_
  std::size_t closed_buckets_ = 0;
};

}  // namespace convoy::app

// `--trace FILE`: a few steps of every rank as a Chrome trace (chrome://tracing, ui.perfetto.dev), all on rank 0's clock.
//
// A process a rank; its threads: steps, compute (one event an operation: layer and kind), communication (what the rank
// waited for) and loader. A gradient bucket is an event of its own from its start to when the rank saw it finished. Where
// tracing is off nothing of this exists; where it is on, operations are timed during the traced steps alone. On a GPU the
// device's clock says when they ran, a thread a lane; its steps are captured anew with time stamps around every operation,
// which costs them a few microseconds each.
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

  // Collective. Instruments the session's training program; `session` must outlive this object. Steps count from 0.
  Trace(std::string file, Session& session, const comm::Communicator& ranks, std::int64_t first_step,
        std::int64_t total_steps);

  void begin_step(std::int64_t step);    // several may have begun before the first of them ends
  void loaded(Clock::time_point since);  // the batch is there; the rank has waited for it since then
  // Collective where the last traced step ends: rank 0 writes the file. `places` is what places_of gave it.
  void end_step(std::int64_t step, const std::vector<RankPlace>& places);

 private:
  struct Event {
    std::int64_t begin, end;  // nanoseconds of this rank's clock
    const std::string *name, *kind;
    int lane;
    int bucket = -1;  // of what goes on beside the lanes: its number
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
  std::vector<std::string> step_names_, layers_, kinds_;  // what the events point into
  std::vector<Event> events_;
  std::vector<std::size_t> open_buckets_;  // of this step, in starting order: indices into events_
  std::size_t closed_buckets_ = 0;
};

}  // namespace convoy::app

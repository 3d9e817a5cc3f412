// An executor runs the programs of a session. On a host backend it runs the kernels in the calling
// thread. On a GPU it launches captured graphs, which run asynchronously. Steps finish in the order
// in which they were started.
//
// A session may run the steps of several trainings together, which are its members (Member,
// step_options.h). A lane is a sequence of instructions that may run at the same time as other
// lanes (lane_plan.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "app/compile/step_options.h"
#include "app/execute/device_gate.h"
#include "app/execute/intervals.h"
#include "app/execute/model_memory.h"
#include "app/execute/program.h"
#include "app/execute/step_result.h"
#include "data/loader/batch.h"

namespace convoy::app {

// Returns the metrics that ModelMemory::metrics() holds.
inline StepMetrics step_metrics(const double* sums) { return {sums[0], sums[1], sums[2], sums[3], sums[4]}; }

// The time during which an instruction ran, in nanoseconds of std::chrono::steady_clock. An
// instruction that starts a communication lasts until the communication ends.
struct TracedInstruction {
  Interval time;
  int lane = 0;
};
// One element per instruction of the step, in the program's order.
using TracedStep = std::vector<TracedInstruction>;

class Executor {
 public:
  virtual ~Executor() = default;

  // Return a member's control values and labels for the next step. Values stay the same from step
  // to step until the caller changes them.
  virtual kernels::StepControl& control(int member) = 0;
  virtual std::span<std::int32_t> labels(int member) = 0;
  // Makes `batch` the input of the next step of these members. A step takes at most
  // InputOptions::batches different batches. If the device stores all images, `first_byte` says
  // where the images of the batch's split (training or test) begin: the offset in the image memory
  // of the device.
  virtual void load(data::BatchLease batch, std::span<const int> members, std::int64_t first_byte) = 0;
  // Tells the executor that it need not compute this member any more.
  virtual void retire(int member) = 0;

  // Makes every later step of this executor wait for the newest step that `before` has started.
  // `before` is an executor of the same kind. If it is null, steps wait for no other executor.
  virtual void start_after(Executor* before) = 0;
  // Starts a step. At most steps_ahead() + 1 steps may be in flight.
  virtual void start(const Program& program, bool stop_requested) = 0;
  // Waits for the oldest step in flight and returns its results. Throws std::runtime_error if the
  // device failed.
  virtual StepResult finish() = 0;
  virtual int in_flight() const = 0;
  // Returns the number of steps to keep in flight so that the device never waits for the host. It
  // is 0 if start() itself computes the step.
  virtual int steps_ahead() const = 0;

  // Prepares a trace: a record of when every instruction ran, in the first `steps` steps that are
  // started after begin_trace(). Tracing does not change results. The host executor does nothing
  // here, because a program on a host can be traced with Program::instrument().
  virtual void prepare_trace(const Program&, int) {}
  virtual void begin_trace() {}
  // Returns the traced steps in their order. All of them must be finished.
  virtual std::vector<TracedStep> traced_steps() { return {}; }
};

struct HostExecution {
  std::span<const float> probabilities;  // written by the running step
  std::function<void()> between;         // called after every instruction; may be empty
  // Points to the milliseconds that this rank has waited for other ranks since the run began.
  const double* exposed_ms = nullptr;
  DeviceGate* gate = nullptr;  // null if no other session uses the host's threads
};
std::unique_ptr<Executor> make_host_executor(const ModelMemory& memory, HostExecution execution);

struct DeviceExecution {
  // The probabilities that a running step writes, in device memory.
  std::span<const float> probabilities;
  // Whether the images of each step are copied to the device. If so, they go into a ring that has
  // room for kRingSlots times `batches` batches.
  bool streamed = false;
  int batches = 1;
  // The largest number of lanes that compute in a program. Lanes for copies come in addition.
  int lanes = 1;
  // The number of lanes that compute in a program for which no LaneOrder was set.
  int fixed_lanes = 1;
  // The largest number of instructions in one program that wait for other ranks. Each is timed.
  int waits = 0;
  DeviceGate* gate = nullptr;  // null if no other session uses the device
  Precision precision = Precision::fp32;
};
std::unique_ptr<Executor> make_cuda_executor(const ModelMemory& memory, const DeviceExecution& execution);

}  // namespace convoy::app

// What runs the programs of a session: the kernels of a host backend in the calling thread, or a GPU's as captured
// graphs that run behind the caller's back. Steps finish in the order in which they were started.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "app/compile/step_options.h"
#include "app/execute/intervals.h"
#include "app/execute/model_memory.h"
#include "app/execute/program.h"
#include "data/loader/batch.h"

namespace convoy::app {

// Sums over the samples of all ranks.
struct StepMetrics {
  double loss_sum = 0, top1 = 0, top5 = 0, samples = 0;
  double stop_requests = 0;  // ranks that want to stop
  StepMetrics& operator+=(const StepMetrics& other);
  double loss() const { return loss_sum / samples; }
};

// When a step's instructions ran, by std::chrono::steady_clock. One that only starts something lasts as long as that.
struct TracedInstruction {
  Interval time;
  int lane = 0;
};
using TracedStep = std::vector<TracedInstruction>;  // in the program's order

class Executor {
 public:
  virtual ~Executor() = default;

  // What the next step starts with; both keep their values from step to step.
  virtual kernels::StepControl& control() = 0;
  virtual std::span<std::int32_t> labels() = 0;
  // Makes a batch the next step's. `first_byte`: position of the batch's image set among the
  // resident images.
  virtual void load(data::BatchLease batch, std::int64_t first_byte) = 0;

  // Starts a step. At most steps_ahead() + 1 may be under way.
  virtual void start(const Program& program, bool stop_requested) = 0;
  // Waits for the oldest step under way. Throws std::runtime_error when the device failed.
  virtual StepMetrics finish() = 0;
  virtual int under_way() const = 0;
  // Steps worth starting before the oldest is waited for, so that the device never waits for the host; 0 where start()
  // does the work itself.
  virtual int steps_ahead() const = 0;

  virtual double exposed_comm_ms() const = 0;  // waited for other ranks in the last step that was finished

  // For a trace. Of an executor whose steps are one launch each: makes ready that the next `steps` steps started after
  // begin_trace() are timed instruction by instruction; without effect on their results.
  virtual void prepare_trace(const Program&, int) {}
  virtual void begin_trace() {}
  // The traced steps, once finished, in their order.
  virtual std::vector<TracedStep> traced_steps() { return {}; }
};

struct HostExecution {
  kernels::StepControl* control = nullptr;
  std::function<void()> between;       // called behind every instruction; may be empty
  const double* exposed_ms = nullptr;  // counts up
};
std::unique_ptr<Executor> make_host_executor(const ModelMemory& memory, HostExecution execution);

struct DeviceExecution {
  kernels::StepControl* control = nullptr;  // device memory
  bool streamed = false;                    // images come through a ring of kRingSlots batches
  int lanes = 1;                            // instructions that may run side by side
  int waits = 0;                            // most instructions of a program that wait for other ranks
};
std::unique_ptr<Executor> make_cuda_executor(const ModelMemory& memory, const DeviceExecution& execution);

}  // namespace convoy::app

// An executor runs the programs of a session. On a host backend it runs the kernels in the calling
// thread. On a GPU it launches captured graphs that run asynchronously. Steps finish in the order
// of their starts.
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

// The metrics of a step, summed over the samples of all ranks.
struct StepMetrics {
  double loss_sum = 0, top1 = 0, top5 = 0, samples = 0;
  double stop_requests = 0;  // number of ranks that want to stop
  StepMetrics& operator+=(const StepMetrics& other) {
    loss_sum += other.loss_sum, top1 += other.top1, top5 += other.top5, samples += other.samples;
    stop_requests += other.stop_requests;
    return *this;
  }
  double loss() const { return loss_sum / samples; }
};
// The metrics of a step from ModelMemory::metrics().
inline StepMetrics step_metrics(const double* sums) { return {sums[0], sums[1], sums[2], sums[3], sums[4]}; }

// The time at which an instruction ran, by std::chrono::steady_clock in nanoseconds. An instruction
// that starts a communication lasts until that communication ends.
struct TracedInstruction {
  Interval time;
  int lane = 0;
};
using TracedStep = std::vector<TracedInstruction>;  // in the program's order

class Executor {
 public:
  virtual ~Executor() = default;

  // A member's control values and labels of the next step. Both keep their values from step to
  // step.
  virtual kernels::StepControl& control(int member) = 0;
  virtual std::span<std::int32_t> labels(int member) = 0;
  // Makes `batch` the input of these members' next step. A step takes at most
  // InputOptions::batches different ones. `first_byte`: offset of the batch's image set among the
  // resident images.
  virtual void load(data::BatchLease batch, std::span<const int> members, std::int64_t first_byte) = 0;
  // Steps need not compute this member any more.
  virtual void retire(int member) = 0;

  // Starts a step. At most steps_ahead() + 1 steps may be in flight.
  virtual void start(const Program& program, bool stop_requested) = 0;
  // Waits for the oldest step in flight. Throws std::runtime_error if the device failed.
  virtual std::span<const StepMetrics> finish() = 0;  // by member
  // The probabilities of the step that finish() returned last, [capacity, classes]; empty if none
  // are kept. Valid until the next start().
  virtual std::span<const float> probabilities() const = 0;
  virtual int in_flight() const = 0;
  // The number of steps to keep in flight so that the device never waits for the host. It is 0 if
  // start() does the work itself.
  virtual int steps_ahead() const = 0;

  virtual double exposed_comm_ms() const = 0;  // time that the last finished step waited for other ranks

  // Prepares a trace of the next `steps` steps started after begin_trace(), which times every
  // instruction. The results stay the same. Executors that run instructions one by one need no
  // preparation and do nothing.
  virtual void prepare_trace(const Program&, int) {}
  virtual void begin_trace() {}
  // Returns the traced steps in their order. They must be finished.
  virtual std::vector<TracedStep> traced_steps() { return {}; }
};

struct HostExecution {
  std::span<const float> probabilities;  // of the running step
  std::function<void()> between;         // called after every instruction; may be empty
  const double* exposed_ms = nullptr;    // milliseconds waited for other ranks since the run began
};
std::unique_ptr<Executor> make_host_executor(const ModelMemory& memory, HostExecution execution);

struct DeviceExecution {
  std::span<const float> probabilities;  // device memory; of the running step
  bool streamed = false;                 // images arrive through a ring of kRingSlots times `batches` batches
  int batches = 1;
  int lanes = 1;  // instructions that may run at the same time
  int waits = 0;  // the most instructions of one program that wait for other ranks
};
std::unique_ptr<Executor> make_cuda_executor(const ModelMemory& memory, const DeviceExecution& execution);

}  // namespace convoy::app

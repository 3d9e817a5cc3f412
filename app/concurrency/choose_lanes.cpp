#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "app/concurrency/lane_choice.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/execute/session_tools.h"
#include "kernels/device/gpu_model.h"
#include "kernels/device/tuning.h"

namespace convoy::app {

DeviceThroughput device_throughput(const StepOptions& options) {
  const kernels::GpuModel& gpu = kernels::kReferenceGpu;
  const double operations = options.precision == Precision::bf16   ? gpu.operations_bf16
                            : options.precision == Precision::tf32 ? gpu.operations_tf32
                                                                   : gpu.operations_fp32;
  return {operations * 1e-3, gpu.copied_bytes * 1e-3};
}

namespace {

LaneChoice model_choice(Session& session, const Program& program, const StepOptions& options) {
  return choose_by_model(program, track_resources(program), device_throughput(options),
                         SessionTools(session).programs().lanes);
}

LaneChoice cached_choice(const std::string& key, const std::string& text, const Program& program,
                         const StepOptions& options) {
  try {
    LaneChoice choice = read_choice(text, program);
    choice.source = LaneChoice::Source::cached;
    return choice;
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(
        fmt::format("tuning file {}: \"{}\": {}", options.tuning_file, key, error.what()));
  }
}

// Returns the choice of lanes that the tuning file has for this program. If the file has none,
// measures the step on this rank, and adds the choice to the file if that is allowed.
LaneChoice own_choice(Session& session, const Program& program, const StepOptions& options) {
  const ResourceTable resources = track_resources(program);
  const std::string key = choice_key(resources.device.name, program);
  if (const auto known = kernels::tuning::find(key)) return cached_choice(key, *known, program, options);
  SessionTools(session).prepare_timing();
  LaneChoice choice;
  {
    const std::unique_ptr<StepTimer> timer = make_step_timer(session, program);
    choice = choose_by_measurement(program, resources, device_throughput(options),
                                   SessionTools(session).programs().lanes, *timer, kAnalysisBudget);
  }
  session.tensors().reset();
  if (kernels::tuning::measures()) {
    kernels::tuning::keep(key, write_choice(choice));
    kernels::tuning::save();
  }
  return choice;
}

// Returns rank 0's choice of lanes. This choice may not fit the program of a rank with another kind
// of device. Such a rank uses choose_by_model() instead.
LaneChoice agreed_choice(Session& session, const Program& program, const StepOptions& options,
                         const comm::Communicator& ranks) {
  LaneChoice choice;
  std::string text;
  run_on_all_ranks(ranks, [&] {
    if (ranks.rank() != 0) return;
    choice = own_choice(session, program, options);
    text = write_choice(choice);
  });
  if (ranks.size() == 1) return choice;
  text = ranks.broadcast(std::move(text), 0, "the choice of lanes");
  run_on_all_ranks(ranks, [&] {
    try {
      choice = read_choice(text, program);
    } catch (const std::invalid_argument&) {
      choice = model_choice(session, program, options);
    }
  });
  return choice;
}

}  // namespace

std::optional<LaneChoice> choose_lanes(Session& session, const StepOptions& options,
                                       const comm::Communicator& ranks) {
  if (options.lanes != kAutoLanes || options.backend != kernels::Backend::cuda || !options.training)
    return std::nullopt;
  if (std::ranges::any_of(session.steps().main().graph.nodes, &Node::is<Transfer>)) return std::nullopt;
  StepPrograms& programs = SessionTools(session).programs();
  if (options.accumulate)
    programs.train_part.arrange(agreed_choice(session, programs.train_part, options, ranks).lanes);
  LaneChoice choice = agreed_choice(session, programs.train, options, ranks);
  programs.train.arrange(choice.lanes);
  return choice;
}

}  // namespace convoy::app

// Tests the choice of lanes (sequences of instructions that run at the same time) on a GPU: the
// resources of kernels, the measured times, and that lanes do not change the bits of the results.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "app/concurrency/glp4nn.h"
#include "app/concurrency/lane_choice.h"
#include "app/concurrency/sample_streams.h"
#include "app/execute/session_tools.h"
#include "app/model/zoo/zoo.h"
#include "app/timing/step_times.h"
#include "app/training/checkpoint/session_state.h"
#include "comm/placement/environment.h"
#include "comm/single_rank.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/tuning.h"
#include "kernels/gemm/bench/measure.h"
#include "tests/app/execute/train_step.h"
#include "tests/app/execute/whole_session.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

class LanesOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!kernels::gemm::device_present()) GTEST_SKIP() << "no GPU: lanes were not measured";
    kernels::use_gpu(0);
  }
  void TearDown() override { kernels::tuning::stop(); }

  static StepOptions options(int lanes) {
    StepOptions made;
    made.backend = kernels::Backend::cuda;
    made.precision = Precision::bf16;
    made.lanes = lanes;
    made.synchronised_batch_norm = false;
    return made;
  }

  // Chooses and sets the lanes of the session's program. choose_lanes() does the same, but needs a
  // communicator.
  static LaneChoice chosen(Session& session) {
    StepPrograms& programs = SessionTools(session).programs();
    const Program& program = programs.train;
    const ResourceTable resources = track_resources(program);
    SessionTools(session).prepare_timing();
    LaneChoice choice;
    {
      const auto timer = make_step_timer(session, program);
      choice = choose_by_measurement(program, resources, device_throughput(options(kAutoLanes)),
                                     programs.lanes, *timer, kAnalysisBudget);
    }
    session.tensors().reset();
    programs.train.arrange(choice.lanes);
    return choice;
  }

  static std::vector<std::vector<float>> trained(Session& session) {
    fill_batch(session, 5, 1);
    session.input().control().learning_rate = 0.02f;
    for (int step = 0; step < 4; ++step) {
      session.input().control().step = static_cast<std::uint64_t>(step);
      test::train_step(session);
    }
    CheckpointState state;
    SessionState(session).capture(state);
    std::vector<std::vector<float>> values;
    for (const auto member :
         {&CheckpointState::parameters, &CheckpointState::statistics, &CheckpointState::optimizer})
      for (const auto& tensor : state.*member) values.push_back(tensor.values);
    return values;
  }

  comm::SingleRank rank_;
};

TEST_F(LanesOnGpu, EveryKernelIsTracked) {
  Session session = whole_session(every_op(), options(kAutoLanes), rank_);
  const Program& program = SessionTools(session).programs().train;
  const ResourceTable table = track_resources(program);
  EXPECT_GE(table.device.multiprocessors, 1);
  ASSERT_EQ(table.kernels.size(), program.instructions().size());
  int kernels = 0;
  for (const auto& uses : table.kernels)
    for (const KernelUse& use : uses) {
      ++kernels;
      EXPECT_GT(use.registers, 0);
      EXPECT_GE(use.threads, 1);
      EXPECT_GE(use.blocks, 1);
      EXPECT_LE(use.resident * use.threads, table.device.threads);
      EXPECT_LE(use.resident * (use.static_shared + use.dynamic_shared), table.device.shared_bytes);
    }
  EXPECT_GE(kernels, static_cast<int>(table.kernels.size()) - 2);
}

TEST_F(LanesOnGpu, ChosenLanesHaveTheBitsOfOneLane) {
  for (Network (*const make)() : {every_op, residual, grouped}) {
    const Network network = make();
    Session one = whole_session(network, options(1), rank_),
            own = whole_session(network, options(kAutoLanes), rank_);
    const LaneChoice choice = chosen(own);
    EXPECT_LT(choice.analysis_ms, 1000);
    EXPECT_GT(choice.measured_ms, 0);
    EXPECT_LE(choice.measured_ms, 1.05 * choice.measured_before_ms);
    EXPECT_EQ(trained(own), trained(one)) << network.name() << ": " << choice.text();
  }
}

TEST_F(LanesOnGpu, GoogleNetForks) {
  const Network network = make_network({"googlenet", 8, 0, 224, 0});
  Session session = whole_session(network, options(kAutoLanes), rank_);
  const LaneChoice choice = chosen(session);
  EXPECT_GT(choice.forks, 10) << choice.text();
  EXPECT_LT(choice.measured_ms, 0.95 * choice.measured_before_ms) << choice.text();
  EXPECT_LT(choice.analysis_ms, 1000);
}

TEST_F(LanesOnGpu, ConvolutionsRunSampleBySample) {
  const Network network = make_network({"lenet", 8, 0, 32, 0});
  const StepOptions made = options(kAutoLanes);
  const RankGroups groups{&rank_, &rank_, nullptr};
  const CompiledSteps steps = compile_steps(network, made, groups);
  Session session(steps, made, groups);
  SessionTools(session).prepare_timing();
  const Program& program = SessionTools(session).programs().train;
  const StepLoad load = make_step_load(program, estimated_op_ms(program, device_throughput(made)),
                                       track_resources(program), device_throughput(made));
  const auto samples = make_sample_streams(session, *steps.train, load);
  EXPECT_GE(samples->convolutions(), 4);
  EXPECT_GT(samples->streams(), 1);
  EXPECT_GT(samples->time(3), 0);
}

}  // namespace
}  // namespace convoy::app

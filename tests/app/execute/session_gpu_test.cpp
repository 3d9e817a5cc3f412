// Tests whole training steps on a GPU: compares them with the CPU and with other runs, and counts
// their calls of the CUDA runtime.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "app/compile/fit_memory.h"
#include "app/compile/repeated_runs.h"
#include "app/execute/session_tools.h"
#include "app/sharing/shared_device.h"
#include "app/training/checkpoint/session_state.h"
#include "comm/single_rank.h"
#include "data/loader/loader.h"
#include "data/synthetic/random_images.h"
#include "kernels/device/device_memory.h"
#include "kernels/gemm/bench/measure.h"
#include "tests/app/execute/cuda_calls.h"
#include "tests/app/execute/whole_session.h"
#include "tests/app/model/tiny_networks.h"
#include "tests/brief.h"

namespace convoy::app {
namespace {

using kernels::Backend;

// Returns a network whose work is mostly in fully connected layers.
Network wide() {
  Network net("wide", {8, 3, 9, 9});
  const LayerId conv = net.add("conv", Conv2d::square(8, 3, 1, 1, true), net.input());
  const LayerId fc1 = net.add("fc1", Linear{2048}, net.add("relu0", Relu{}, conv));
  const LayerId fc2 = net.add("fc2", Linear{1024}, net.add("relu1", Relu{}, fc1));
  net.add("fc3", Linear{5}, net.add("relu2", Relu{}, fc2));
  return net;
}

// Returns a network that adds a convolution to the convolution's own input. So one tensor is both
// the gradient that backward_data reads and the gradient that it adds to its result.
Network skips() {
  Network net("skips", {8, 16, 9, 9});
  LayerId last = net.add("relu0", Relu{}, net.add("bn0", BatchNorm{}, net.input()));
  for (const char* name : {"1", "2"}) {
    const std::string part = name;
    const LayerId conv = net.add("conv" + part, Conv2d::square(16, 3, 1, 1), last);
    const LayerId sum = net.add("add" + part, Add{}, std::vector{last, conv});
    last = net.add("relu" + part, Relu{}, net.add("bn" + part, BatchNorm{}, sum));
  }
  net.add("fc", Linear{5}, last);
  return net;
}

class CudaSession : public testing::Test {
 protected:
  void SetUp() override {
    if (!kernels::gemm::device_present()) GTEST_SKIP() << "no GPU: steps on CUDA were not tested";
    kernels::use_gpu(0);
  }

  StepOptions options(Backend backend, Precision precision = Precision::fp32,
                      int lanes = kDefaultLanes) const {
    StepOptions made;
    made.backend = backend;
    made.precision = precision;
    made.lanes = lanes;
    made.norm_inputs.least_elements = 1;
    made.synchronised_batch_norm = false;
    made.members[0].hyperparameters.weight_decay = 1e-4f;
    made.clip = true;
    made.members[0].hyperparameters.largest_norm = 3;
    made.optimizer.averages = true;
    made.members[0].hyperparameters.average_decay = 0.9;
    return made;
  }

  static void fill(Session& session, const Network& network) {
    const Shape& shape = network.shape(0);
    std::vector<float> images(static_cast<std::size_t>(shape.elements()));
    initialize({"images", shape, Initializer::normal(1)}, 17, images.data());
    StepInput& input = session.input();
    session.tensors().write(input.images(), images);
    for (std::size_t i = 0; i < input.labels().size(); ++i)
      input.labels()[i] = static_cast<std::int32_t>(i * 7 % 5);
    input.control().valid = input.control().global_valid = static_cast<std::int32_t>(shape[0]) - 1;
    input.labels().back() = -1;
    input.control().learning_rate = 0.02f;
  }

  std::vector<double> losses(Session& session, int steps) {
    std::vector<double> values;
    for (int step = 0; step < steps; ++step) {
      session.input().control().step = static_cast<std::uint64_t>(step);
      session.start(StepKind::train);
      if (session.steps_in_flight() > session.steps_ahead())
        values.push_back(session.finish_step().metrics[0].loss());
    }
    while (session.steps_in_flight() > 0) values.push_back(session.finish_step().metrics[0].loss());
    return values;
  }

  static CheckpointState state_of(Session& session) {
    CheckpointState state;
    SessionState(session).capture(state);
    return state;
  }
  static void expect_same_bits(const CheckpointState& a, const CheckpointState& b) {
    for (const auto member : {&CheckpointState::parameters, &CheckpointState::statistics,
                              &CheckpointState::optimizer, &CheckpointState::averages}) {
      ASSERT_EQ((a.*member).size(), (b.*member).size());
      for (std::size_t i = 0; i < (a.*member).size(); ++i)
        EXPECT_EQ((a.*member)[i].values, (b.*member)[i].values) << (a.*member)[i].name;
    }
  }

  comm::SingleRank ranks_;
};

struct NamedNetwork {
  const char* name;
  Network (*make)();
};
void PrintTo(const NamedNetwork& network, std::ostream* out) { *out << network.name; }

// Each network is a test of its own, so that ctest can run them in parallel under sanitizers, where
// a step takes seconds.
class CudaSessionOf : public CudaSession, public testing::WithParamInterface<NamedNetwork> {};
INSTANTIATE_TEST_SUITE_P(Networks, CudaSessionOf,
                         testing::Values(NamedNetwork{"every_op", every_op},
                                         NamedNetwork{"residual", residual},
                                         NamedNetwork{"rectifying", rectifying}, NamedNetwork{"wide", wide},
                                         NamedNetwork{"grouped", grouped}, NamedNetwork{"skips", skips}),
                         [](const auto& network) { return std::string(network.param.name); });

TEST_P(CudaSessionOf, AgreesWithTheCpuForTwentySteps) {
  const Network network = GetParam().make();
  for (const double clip : {0.0, 3.0}) {
    StepOptions on_cpu = options(Backend::cpu), on_cuda = options(Backend::cuda, Precision::fp32, 2);
    for (StepOptions* made : {&on_cpu, &on_cuda}) {
      made->clip = clip > 0;
      made->members[0].hyperparameters.largest_norm = clip;
    }
    Session cpu = whole_session(network, on_cpu, ranks_), cuda = whole_session(network, on_cuda, ranks_);
    fill(cpu, network), fill(cuda, network);
    const int steps = test::brief() ? 4 : 20;
    const auto expected = losses(cpu, steps), actual = losses(cuda, steps);
    for (std::size_t step = 0; step < expected.size(); ++step)
      EXPECT_NEAR(actual[step], expected[step], 2e-4 * expected[step]) << "step " << step;
    EXPECT_LT(actual.back(), actual.front()) << "nothing was learned";
  }
}

struct Pretending {
  explicit Pretending(int major) { kernels::gemm::pretend_major(major); }
  Pretending(const Pretending&) = delete;
  ~Pretending() { kernels::gemm::pretend_major(0); }
};

// Tests the kernels for this GPU, and then those for GPUs from sm_80 on.
TEST_F(CudaSession, Bf16AndTf32StayNearFp32AndLearn) {
  for (const Network& network : {residual(), grouped(), deep(1)}) {
    Session exact = whole_session(network, options(Backend::cuda), ranks_);
    fill(exact, network);
    const auto expected = losses(exact, 10);
    for (const int major : {0, 8})
      for (const auto& [precision, bound] :
           {std::pair{Precision::tf32, 5e-3}, std::pair{Precision::bf16, 5e-2}}) {
        SCOPED_TRACE(network.name() + (precision == Precision::bf16 ? ", bf16" : ", tf32") +
                     (major > 0 ? ", without Hopper's kernels" : ""));
        const Pretending pretending(major);
        EXPECT_FALSE(major > 0 && kernels::conv2d_fuses_input_norm(Backend::cuda)) << "Hopper's kernels";
        Session session = whole_session(network, options(Backend::cuda, precision), ranks_);
        fill(session, network);
        const auto actual = losses(session, 10);
        for (std::size_t step = 0; step < 10; ++step)
          EXPECT_NEAR(actual[step], expected[step], bound * expected[0]) << "step " << step;
        EXPECT_LT(actual.back(), actual.front());
      }
  }
}

// An evaluation in a part of 8 multiprocessors and a training on the rest run at the same time.
TEST_P(CudaSessionOf, PartsOfTheMultiprocessorsDoNotChangeTheBits) {
  const Network network = GetParam().make();
  const int steps = test::brief() ? 4 : 30;
  const auto evaluates = [&](DeviceGate* gate) {
    StepOptions made;
    made.backend = Backend::cuda;
    made.precision = Precision::bf16;
    made.training = false;
    made.gate = gate;
    return made;
  };
  const auto trains = [&](DeviceGate* gate) {
    StepOptions made = options(Backend::cuda, Precision::bf16);
    made.gate = gate;
    return made;
  };
  const auto evaluate = [&](Session& session) {
    std::vector<double> values;
    for (int step = 0; step < steps; ++step) {
      session.start(StepKind::evaluate);
      values.push_back(session.finish_step().metrics[0].loss());
    }
    return values;
  };
  Session alone = whole_session(network, trains(nullptr), ranks_),
          evaluated_alone = whole_session(network, evaluates(nullptr), ranks_);
  fill(alone, network), fill(evaluated_alone, network);
  const std::vector<double> expected = losses(alone, steps), expected_evaluation = evaluate(evaluated_alone);

  SharingOptions sharing;
  sharing.backend = Backend::cuda;
  sharing.multiprocessors = 8;
  SharedDevice device(sharing);
  const int training = device.add({"training"}, false),
            service = device.add({"service", 0, true, true}, false);
  {
    Session trained = whole_session(network, trains(&device.gate(training)), ranks_);
    Session evaluated = whole_session(network, evaluates(&device.gate(service)), ranks_);
    fill(trained, network), fill(evaluated, network);
    std::vector<double> evaluation;
    std::thread serve([&] { evaluation = evaluate(evaluated); });
    EXPECT_EQ(losses(trained, steps), expected);
    serve.join();
    EXPECT_EQ(evaluation, expected_evaluation);
    expect_same_bits(state_of(trained), state_of(alone));
  }
  device.end(training), device.end(service);
}

TEST_P(CudaSessionOf, TwoRunsAndAnyNumberOfLanesGiveTheSameBits) {
  const Network network = GetParam().make();
  for (const auto& [precision, clip] :
       {std::pair{Precision::fp32, 3.0}, std::pair{Precision::tf32, 0.0}, std::pair{Precision::bf16, 0.0}}) {
    const auto with_lanes = [&, precision = precision, clip = clip](int lanes) {
      StepOptions made = options(Backend::cuda, precision, lanes);
      made.clip = clip > 0;
      made.members[0].hyperparameters.largest_norm = clip;
      return made;
    };
    Session first = whole_session(network, with_lanes(1), ranks_);
    fill(first, network);
    const int steps = test::brief() ? 3 : 12;
    const auto expected = losses(first, steps);
    for (const int lanes : {1, 2, 3, 4}) {
      Session other = whole_session(network, with_lanes(lanes), ranks_);
      fill(other, network);
      EXPECT_EQ(losses(other, steps), expected) << lanes << " lanes";
      expect_same_bits(state_of(other), state_of(first));
    }
  }
}

// Traces steps 2 and 3 of 4. Their times must lie between the start and the finish that the host
// measures, and tracing must not change any bit.
TEST_F(CudaSession, TracedStepsHaveTheTimesOfTheirRunAndChangeNoBits) {
  const Network network = residual();
  const auto now = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  for (const int lanes : {1, 2}) {
    Session plain = whole_session(network, options(Backend::cuda, Precision::fp32, lanes), ranks_);
    Session traced = whole_session(network, options(Backend::cuda, Precision::fp32, lanes), ranks_);
    fill(plain, network), fill(traced, network);
    const auto expected = losses(plain, 4);
    SessionTools(traced).prepare_trace(2);
    std::vector<double> found;
    std::vector<std::int64_t> began, ended;
    for (int step = 0; step < 4; ++step) {
      if (step == 1) SessionTools(traced).begin_trace();
      traced.input().control().step = static_cast<std::uint64_t>(step);
      began.push_back(now());
      traced.start(StepKind::train);
      found.push_back(traced.finish_step().metrics[0].loss());
      ended.push_back(now());
    }
    EXPECT_EQ(found, expected) << lanes << " lanes";
    const auto steps = SessionTools(traced).traced_steps();
    ASSERT_EQ(steps.size(), 2u);
    // The clocks of the host and of the GPU may differ by at most this many nanoseconds.
    constexpr std::int64_t kClocks = 200'000;
    for (std::size_t step = 0; step < 2; ++step) {
      ASSERT_GT(steps[step].size(), 10u);
      std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
      int last_lane = 0;
      for (const auto& [interval, lane] : steps[step]) {
        const auto begin = static_cast<std::int64_t>(interval.begin),
                   end = static_cast<std::int64_t>(interval.end);
        EXPECT_LE(begin, end);
        first = std::min(first, begin), last = std::max(last, end);
        last_lane = std::max(last_lane, lane);
      }
      EXPECT_GT(first, began[step + 1] - kClocks);
      EXPECT_LT(last, ended[step + 1] + kClocks);
      EXPECT_GT(last - first, 10'000) << "all operations of a step within 10 us";
      EXPECT_EQ(last_lane, lanes - 1);
    }
  }
}

// A step does not reuse freed memory for a while (the reuse delay), so that lanes need not wait for
// each other. Under a memory limit, a step must first give up the delay, and only then run
// operations again.
TEST_F(CudaSession, AMemoryLimitGivesUpTheReuseDelayFirstAndChangesNoBit) {
  const Network network = residual();
  StepOptions limited = options(Backend::cuda);
  Session roomy = whole_session(network, limited, ranks_);
  limited.memory_limit = roomy.memory().plan().total() - 1;
  Session tight = whole_session(network, limited, ranks_);
  EXPECT_LE(tight.memory().plan().total(), limited.memory_limit);
  fill(roomy, network), fill(tight, network);
  EXPECT_EQ(losses(tight, 4), losses(roomy, 4));
  expect_same_bits(state_of(tight), state_of(roomy));
}

// Tries several limits, from the least possible memory up to 70 % of the way to the memory of a
// step without a limit.
TEST_F(CudaSession, AnyMemoryLimitDownToTheLeastChangesNoBit) {
  for (const Network& network : {every_op(), residual(), grouped(), plain(8, 32), deep(1)})
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16}) {
      StepOptions limited = options(Backend::cuda, precision);
      limited.pieces = {.least_bytes = 0};  // lets the first layers run over slices of the batch
      CompiledSteps steps = compile_steps(network, limited, {&ranks_, &ranks_, nullptr});
      const std::vector<double> node_ms = estimated_node_ms(*steps.train, limited);
      const MemoryFitter fitter(steps, limited, {}, node_ms);
      const std::int64_t least = fitter.least().bytes;
      Session roomy = whole_session(network, limited, ranks_);
      fill(roomy, network);
      const auto expected = losses(roomy, 4);
      for (const double share : {0.0, 0.3, 0.7}) {
        limited.memory_limit =
            least + static_cast<std::int64_t>(share * static_cast<double>(fitter.unlimited_bytes() - least));
        Session tight = whole_session(network, limited, ranks_);
        EXPECT_LE(tight.memory().plan().total(), limited.memory_limit);
        fill(tight, network);
        EXPECT_EQ(losses(tight, 4), expected) << network.name() << " within " << limited.memory_limit;
        expect_same_bits(state_of(tight), state_of(roomy));
      }
    }
}

// Copies to and from host memory run at the same time as kernels, with several steps in flight. In
// such small networks the planner may find no copy useful. The next test makes all possible copies.
TEST_F(CudaSession, ActivationsInHostMemoryChangeNoBit) {
  for (const Network& network : {every_op(), residual(), grouped()})
    for (const Precision precision : {Precision::fp32, Precision::bf16})
      for (const int lanes : {1, 3}) {
        StepOptions limited = options(Backend::cuda, precision);
        limited.lanes = lanes;
        Session roomy = whole_session(network, limited, ranks_);
        fill(roomy, network);
        const auto expected = losses(roomy, 6);
        limited.host_memory = 1 << 26;
        CompiledSteps steps = compile_steps(network, limited, {&ranks_, &ranks_, nullptr});
        const std::vector<double> node_ms = estimated_node_ms(*steps.train, limited);
        const MemoryFitter fitter(steps, limited, {}, node_ms, estimated_link(limited));
        const std::int64_t least = fitter.least().bytes, most = fitter.unlimited_bytes();
        for (const double share : {0.0, 0.3, 0.7}) {
          limited.memory_limit = least + static_cast<std::int64_t>(share * static_cast<double>(most - least));
          Session tight = whole_session(network, limited, ranks_);
          EXPECT_LE(tight.memory().plan().total(), limited.memory_limit);
          EXPECT_EQ(tight.memory().host_bytes(), tight.steps().fit.host_bytes);
          fill(tight, network);
          EXPECT_EQ(losses(tight, 6), expected) << network.name() << " within " << limited.memory_limit;
          expect_same_bits(state_of(tight), state_of(roomy));
        }
      }
}

// Copies every copyable tensor to host memory and back, even if this makes the step slower.
TEST_F(CudaSession, EveryActivationMayWaitInHostMemory) {
  const Network network = residual();
  const StepOptions all = options(Backend::cuda, Precision::bf16);
  Session roomy = whole_session(network, all, ranks_);
  fill(roomy, network);
  const auto expected = losses(roomy, 6);
  CompiledSteps steps = compile_steps(network, all, {&ranks_, &ranks_, nullptr});
  const partition::StepModel model = step_model(*steps.train, estimated_node_ms(*steps.train, all));
  std::vector<int> tensors;
  for (int tensor = 0; tensor < std::ssize(model.copyable); ++tensor)
    if (model.copyable[static_cast<std::size_t>(tensor)]) tensors.push_back(tensor);
  const partition::HostLink link = estimated_link(all);
  const partition::StepSchedule once = single_runs(model);
  const partition::HostCopies copies(model, once, tensors, link);
  for (const partition::StepSchedule& schedule : {copies.on_demand(), copies.hidden(std::int64_t{1} << 40)}) {
    CompiledSteps copied(with_schedule(*steps.train, schedule, Backend::cuda, 0), steps.evaluate, all);
    Session session(std::move(copied), all, {&ranks_, &ranks_, nullptr});
    EXPECT_GT(session.memory().host_bytes(), 0);
    fill(session, network);
    EXPECT_EQ(losses(session, 6), expected);
    expect_same_bits(state_of(session), state_of(roomy));
  }
}

TEST_F(CudaSession, ACheckpointGoesToTheCpuAndBack) {
  const Network network = every_op();
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    Session cuda = whole_session(network, options(Backend::cuda, precision), ranks_),
            cpu = whole_session(network, options(Backend::cpu), ranks_);
    fill(cuda, network), fill(cpu, network);
    losses(cuda, 3);
    CheckpointState written = state_of(cuda);
    written.model = network.name();
    SessionState(cpu).restore(written, "there", network.name(), 0, {});
    expect_same_bits(state_of(cpu), written);
    const double bound = precision == Precision::fp32 ? 1e-4 : 5e-2;
    const double on_cpu = losses(cpu, 1)[0], on_cuda = losses(cuda, 1)[0];
    EXPECT_NEAR(on_cpu, on_cuda, bound * on_cuda);
    CheckpointState back = state_of(cpu);
    back.model = network.name();
    SessionState(cuda).restore(back, "back", network.name(), 0, {});
    expect_same_bits(state_of(cuda), back);
    EXPECT_NEAR(losses(cuda, 1)[0], losses(cpu, 1)[0], bound * on_cuda);
  }
}

// A session that gets batches of random, augmented images. Each step's images are copied to the
// device, or all images are stored there from the start.
struct Fed {
  std::shared_ptr<data::RandomImages> set =
      std::make_shared<data::RandomImages>(data::ImageShape{8, 8, 3}, 5, 50, 3);
  std::unique_ptr<data::Loader> loader;
  Network network = residual();
  std::unique_ptr<Session> session;

  Fed(StepOptions options, InputOptions::Kind kind, comm::Collectives& ranks) {
    options.input.kind = kind;
    options.input.mean = {0.4f, 0.5f, 0.6f}, options.input.std = {0.2f, 0.3f, 0.4f};
    options.input.stored = set->shape();
    options.input.resident_images = 57;
    options.input.batch_bytes = data::cut_capacity(set->shape(), set->shape(), network.shape(0)[0]);
    options.input.most_image_ops = 1;
    options.mixing = true;
    session = std::make_unique<Session>(whole_steps(network, options, ranks), options,
                                        RankGroups{&ranks, &ranks, nullptr});
    data::LoaderOptions feed;
    feed.global_batch = network.shape(0)[0];
    feed.augmentation = data::parse_augmentation("crop:2,flip,cutout:3,erase:0.5");
    feed.augmentation.image_ops.auto_augment = data::AutoAugment::trivial;
    feed.mix.mixup = 0.2f;
    feed.mean = options.input.mean, feed.std = options.input.std;
    const bool streamed = kind == InputOptions::Kind::streamed;
    feed.output = streamed ? data::BatchOutput::cuts : data::BatchOutput::transforms;
    if (streamed) feed.memory = &kernels::pinned_memory();
    feed.buffers += kRingSlots;
    loader = std::make_unique<data::Loader>(set, feed);
    if (streamed) return;
    std::vector<std::uint8_t> scratch(192);
    for (std::int64_t i = 0; i < 50; ++i)
      session->tensors().put_image(7 + i, set->stored(i, scratch).data(), 1);
  }
  ~Fed() { session.reset(); }  // the session ends before the loader, whose batches it holds

  void start() {
    session->input().control().learning_rate = 0.05f;
    session->input().load(loader->next(), 7);
    session->start(StepKind::train);
  }
  std::vector<double> run(int steps) {
    std::vector<double> values;
    for (int step = 0; step < steps; ++step) {
      start();
      if (session->steps_in_flight() > session->steps_ahead())
        values.push_back(session->finish_step().metrics[0].loss());
    }
    while (session->steps_in_flight() > 0) values.push_back(session->finish_step().metrics[0].loss());
    return values;
  }
};

TEST_F(CudaSession, ResidentImagesGiveTheBitsOfStreamedOnes) {
  Fed streamed(options(Backend::cuda), InputOptions::Kind::streamed, ranks_);
  Fed resident(options(Backend::cuda), InputOptions::Kind::resident, ranks_);
  const int steps = test::brief() ? 6 : 40;
  EXPECT_EQ(streamed.run(steps), resident.run(steps));
  expect_same_bits(state_of(*streamed.session), state_of(*resident.session));
}

TEST_F(CudaSession, AStepIsOneLaunchAndTheCopiesOfItsInput) {
  constexpr int kSteps = 30;
  for (const auto kind : {InputOptions::Kind::streamed, InputOptions::Kind::resident}) {
    Fed fed(options(Backend::cuda, Precision::bf16), kind, ranks_);
    fed.run(5);
    const test::CudaCalls calls;
    fed.run(kSteps);
    EXPECT_EQ(calls.named("cudaGraphLaunch"), kSteps) << calls.text();
    const bool streamed = kind == InputOptions::Kind::streamed;
    EXPECT_EQ(calls.named("cudaMemcpyAsync"), streamed ? kSteps : 0) << calls.text();
    // A step makes one call. If its images are copied, three more calls follow: the copy, an event
    // after it, and the wait of the computation for the event.
    EXPECT_EQ(calls.named("cuda"), streamed ? 4 * kSteps : kSteps) << calls.text();
  }
}

}  // namespace
}  // namespace convoy::app

// Trains the same network on one rank and on all ranks, and compares the results. Does so on the
// host and, if each rank has a GPU, on GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "app/execute/session_tools.h"
#include "comm/single_rank.h"
#include "tests/app/execute/cuda_calls.h"
#include "tests/app/execute/ranks_on.h"
#include "tests/app/execute/train_step.h"
#include "tests/app/execute/whole_session.h"
#include "tests/brief.h"
#include "tests/mpi/world.h"

namespace convoy::app {
namespace {

using kernels::Backend;
using test::world;

// The number of images in a global batch. 1, 2, 3, 4, 6 or 8 ranks divide it evenly.
constexpr std::int64_t kGlobalBatch = 24, kClasses = 5;
constexpr int kSteps = 12;

// Returns a network with a batch norm between convolutions. One layer's gradients fill several
// buckets (the ranks sum the gradients of a bucket in one operation).
Network network_of(std::int64_t batch) {
  Network net("ranks", {batch, 3, 8, 8});
  const LayerId conv1 = net.add("conv1", Conv2d::square(8, 3, 1, 1), net.input());
  const LayerId relu1 = net.add("relu1", Relu{}, net.add("bn1", BatchNorm{}, conv1));
  const LayerId conv2 = net.add("conv2", Conv2d::square(8, 3, 1, 1), relu1);
  const LayerId add = net.add("add", Add{}, {net.add("bn2", BatchNorm{}, conv2), relu1});
  const LayerId fc1 = net.add("fc1", Linear{2560}, net.add("relu2", Relu{}, add));
  const LayerId fc2 = net.add("fc2", Linear{600}, net.add("relu3", Relu{}, fc1));
  net.add("fc3", Linear{static_cast<int>(kClasses)}, net.add("relu4", Relu{}, fc2));
  return net;
}

struct Trained {
  std::vector<double> losses;
  std::vector<std::vector<float>> parameters;
  double exposed_ms = 0;
};

class SessionOnRanks : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (kGlobalBatch % world().size() != 0) GTEST_SKIP() << "the ranks do not divide the batch";
    if (const std::string missing = test::missing_devices(GetParam()); !missing.empty())
      GTEST_SKIP() << missing;
    ranks_ = test::collectives_on(GetParam());
  }

  Trained train(Precision precision, comm::Collectives& ranks, double clip = 0) const {
    StepOptions options;
    options.backend = GetParam();
    options.precision = precision;
    options.clip = clip > 0;
    options.members[0].hyperparameters.largest_norm = clip;
    const std::int64_t batch = kGlobalBatch / ranks.size();
    Session session = whole_session(network_of(batch), options, ranks);
    fill(session, batch, batch * ranks.rank());
    Trained trained;
    const auto finish = [&] {
      const StepResult result = session.finish_step();
      trained.losses.push_back(result.metrics[0].loss());
      trained.exposed_ms += result.exposed_comm_ms;
    };
    const int steps = test::brief() ? 3 : kSteps;
    for (int step = 0; step < steps; ++step) {
      session.input().control().step = static_cast<std::uint64_t>(step);
      session.start(StepKind::train);
      if (session.steps_in_flight() > session.steps_ahead()) finish();
    }
    while (session.steps_in_flight() > 0) finish();
    for (const PersistentTensor& tensor : session.memory().parameters())
      trained.parameters.push_back(session.tensors().read(tensor));
    for (const PersistentTensor& tensor : session.memory().states())
      trained.parameters.push_back(session.tensors().read(tensor));
    return trained;
  }

  // Fills the session with the images [first, first + batch) of one set.
  static void fill(Session& session, std::int64_t batch, std::int64_t first) {
    std::vector<float> all(static_cast<std::size_t>(kGlobalBatch * 3 * 8 * 8));
    initialize({"images", {kGlobalBatch, 3, 8, 8}, Initializer::normal(1)}, 17, all.data());
    const auto from = all.begin() + first * 3 * 8 * 8;
    StepInput& input = session.input();
    session.tensors().write(input.images(), std::vector(from, from + batch * 3 * 8 * 8));
    for (std::int64_t i = 0; i < batch; ++i)
      input.labels()[static_cast<std::size_t>(i)] = static_cast<std::int32_t>((first + i) * 7 % kClasses);
    input.control().valid = static_cast<std::int32_t>(batch);
    input.control().global_valid = kGlobalBatch;
    input.control().learning_rate = 0.01f;
  }

  std::vector<Precision> precisions() const {
    if (GetParam() != Backend::cuda) return {Precision::fp32};
    return {Precision::fp32, Precision::tf32, Precision::bf16};
  }

  std::unique_ptr<comm::Collectives> ranks_;
  comm::SingleRank alone_;
};

INSTANTIATE_TEST_SUITE_P(On, SessionOnRanks, testing::Values(Backend::cpu, Backend::cuda),
                         [](const auto& info) { return info.param == Backend::cuda ? "Cuda" : "Cpu"; });

TEST_P(SessionOnRanks, LossesAreThoseOfOneRank) {
  for (const double clip : {0.0, 0.5}) {
    const Trained one = train(Precision::fp32, alone_, clip), all = train(Precision::fp32, *ranks_, clip);
    for (std::size_t step = 0; step < one.losses.size(); ++step)
      EXPECT_NEAR(all.losses[step], one.losses[step], 2e-4 * one.losses[step]) << "step " << step;
    if (!test::brief()) {
      EXPECT_LT(one.losses.back(), 0.9 * one.losses.front()) << "nothing was learned";
    }
  }
}

TEST_P(SessionOnRanks, Bf16AndTf32StayNearOneRank) {
  for (const Precision precision : precisions()) {
    const double bound = precision == Precision::bf16 ? 3e-2 : 5e-3;
    const Trained one = train(precision, alone_), all = train(precision, *ranks_);
    for (std::size_t step = 0; step < one.losses.size(); ++step)
      EXPECT_NEAR(all.losses[step], one.losses[step], bound * one.losses[0]) << "step " << step;
  }
}

TEST_P(SessionOnRanks, TwoRunsAndAllRanksHaveTheSameBits) {
  for (const Precision precision : precisions()) {
    const Trained first = train(precision, *ranks_), second = train(precision, *ranks_);
    EXPECT_EQ(first.losses, second.losses);
    EXPECT_EQ(first.parameters, second.parameters);
    for (const std::vector<float>& mine : first.parameters) {
      std::vector<float> roots = mine;
      world().broadcast(std::span<float>(roots), 0, "parameters");
      EXPECT_EQ(mine, roots);
    }
  }
}

// A global batch in three parts of 8 images must give the losses of the whole batch on every
// backend. The network has no batch norm, whose statistics would be those of each part. Sums over
// the ranks may start only when the gradients of the last part are finished.
TEST_P(SessionOnRanks, PartsAddUpToTheWholeBatch) {
  constexpr std::int64_t kParts = 3, kPart = kGlobalBatch / kParts;
  if (kPart % world().size() != 0) GTEST_SKIP() << "the ranks do not divide a part of the batch";
  const auto plain = [](std::int64_t batch) {
    Network net("plain", {batch, 3, 8, 8});
    const LayerId conv1 = net.add("conv1", Conv2d::square(8, 3, 1, 1, true), net.input());
    const LayerId fc1 = net.add("fc1", Linear{600}, net.add("relu1", Relu{}, conv1));
    net.add("fc2", Linear{static_cast<int>(kClasses)}, net.add("relu2", Relu{}, fc1));
    return net;
  };
  const std::int64_t batch = kGlobalBatch / world().size(), slice = kPart / world().size();
  StepOptions options;
  options.backend = GetParam();
  options.optimizer.averages = true;
  options.members[0].hyperparameters.average_decay = 0.9;
  options.clip = true;
  options.members[0].hyperparameters.largest_norm = 0.5;
  Session whole = whole_session(plain(batch), options, *ranks_);
  options.accumulate = true;
  Session parts = whole_session(plain(slice), options, *ranks_);
  fill(whole, batch, batch * world().rank());
  for (std::uint64_t step = 0; step < 4; ++step) {
    whole.input().control().step = parts.input().control().step = step;
    const double expected = test::train_step(whole).loss();
    StepMetrics sum;
    for (std::int64_t part = 0; part < kParts; ++part) {
      fill(parts, slice, kPart * part + slice * world().rank());
      parts.input().control().global_valid = static_cast<std::int32_t>(kPart);
      parts.input().control().part = static_cast<std::int32_t>(part);
      parts.input().control().share = 1.0f / kParts;
      parts.start(part + 1 < kParts ? StepKind::train_part : StepKind::train);
      sum += parts.finish_step().metrics[0];
    }
    EXPECT_EQ(sum.samples, kGlobalBatch);
    EXPECT_NEAR(sum.loss(), expected, 1e-5 * expected) << "step " << step;
  }
  for (const auto member : {&ModelMemory::parameters, &ModelMemory::averages}) {
    const auto& of_whole = (whole.memory().*member)();
    const auto& of_parts = (parts.memory().*member)();
    ASSERT_FALSE(of_whole.empty());
    for (std::size_t i = 0; i < of_whole.size(); ++i) {
      const std::vector<float> expected = whole.tensors().read(of_whole[i]),
                               found = parts.tensors().read(of_parts[i]);
      for (std::size_t k = 0; k < expected.size(); ++k)
        ASSERT_NEAR(found[k], expected[k], 1e-5) << of_whole[i].name;
    }
  }
}

// exchange_averages() swaps parameters and averages. After the first call an evaluation must use
// the averages, and after the second call the old parameters.
TEST_P(SessionOnRanks, ExchangedAveragesAreTestedAndComeBack) {
  for (const Precision precision : precisions()) {
    StepOptions options;
    options.backend = GetParam();
    options.precision = precision;
    options.optimizer.averages = true;
    options.members[0].hyperparameters.average_decay = 0.75;
    const std::int64_t batch = kGlobalBatch / world().size();
    Session session = whole_session(network_of(batch), options, *ranks_);
    fill(session, batch, batch * world().rank());
    for (std::uint64_t step = 0; step < 3; ++step) {
      session.input().control().step = step;
      test::train_step(session);
    }
    const auto test = [&] {
      session.start(StepKind::evaluate);
      return session.finish_step().metrics[0].loss();
    };
    const double before = test();
    const std::vector<float> weights = session.tensors().read(session.memory().parameters()[0]);
    session.tensors().exchange_averages();
    EXPECT_EQ(session.tensors().read(session.memory().averages()[0]), weights);
    EXPECT_NE(test(), before);
    session.tensors().exchange_averages();
    EXPECT_EQ(test(), before);
    EXPECT_EQ(session.tensors().read(session.memory().parameters()[0]), weights);
  }
}

TEST_P(SessionOnRanks, ReportsTheTimeWaitedForOtherRanks) {
  const Trained all = train(Precision::fp32, *ranks_);
  if (world().size() == 1)
    EXPECT_EQ(all.exposed_ms, 0);
  else
    EXPECT_GT(all.exposed_ms, 0);
  EXPECT_LT(all.exposed_ms, 60'000);
}

// A step on several ranks must also make only one call of the CUDA runtime: none for sums over the
// ranks, and none in the watchdog's thread. CudaSession.AStepIsOneLaunchAndTheCopiesOfItsInput
// tests the calls for the input of one rank.
TEST_P(SessionOnRanks, AStepIsOneLaunch) {
  if (GetParam() != Backend::cuda) GTEST_SKIP() << "steps on the host are not launched as a graph";
  StepOptions options;
  options.backend = GetParam();
  const std::int64_t batch = kGlobalBatch / world().size();
  Session session = whole_session(network_of(batch), options, *ranks_);
  fill(session, batch, batch * world().rank());
  const auto run = [&](int steps) {
    for (int step = 0; step < steps; ++step) {
      session.start(StepKind::train);
      if (session.steps_in_flight() > session.steps_ahead()) session.finish_step();
    }
    while (session.steps_in_flight() > 0) session.finish_step();
  };
  run(5);
  constexpr int kCounted = 30;
  const test::CudaCalls calls;
  run(kCounted);
  EXPECT_EQ(calls.named("cudaGraphLaunch"), kCounted) << calls.text();
  EXPECT_EQ(calls.named("cuda"), kCounted) << calls.text();
}

// The thread blocks of the parameter update fill the GPU. The time stamps of the update's begin and
// of the sums over the ranks before it must not be delayed until these blocks end.
TEST_P(SessionOnRanks, ATracedUpdateTakesAsLongAsItsBytes) {
  if (GetParam() != Backend::cuda) GTEST_SKIP() << "only a device traces steps by stamps";
  const std::int64_t batch = kGlobalBatch / world().size();
  Network net("wide", {batch, 3, 8, 8});
  const LayerId fc1 = net.add("fc1", Linear{8192}, net.input());
  const LayerId fc2 = net.add("fc2", Linear{4096}, net.add("relu1", Relu{}, fc1));
  net.add("fc3", Linear{static_cast<int>(kClasses)}, net.add("relu2", Relu{}, fc2));
  StepOptions options;
  options.backend = GetParam();
  Session session = whole_session(net, options, *ranks_);
  fill(session, batch, batch * world().rank());
  SessionTools(session).prepare_trace(kSteps);
  SessionTools(session).begin_trace();
  for (int step = 0; step < kSteps; ++step) {
    session.input().control().step = static_cast<std::uint64_t>(step);
    session.start(StepKind::train);
    session.finish_step();
  }
  const auto& instructions = SessionTools(session).programs().train.instructions();
  const auto update = std::ranges::find(instructions, "optimizer_update", &Instruction::kind);
  ASSERT_NE(update, instructions.end());
  for (const TracedStep& step : SessionTools(session).traced_steps()) {
    const Interval updated = step[static_cast<std::size_t>(update - instructions.begin())].time;
    constexpr double kBytesPerNanosecond = 10'000;  // no memory is faster than this
    // Time stamps at the same point of the program differ by at most this many nanoseconds.
    constexpr std::uint64_t kStamps = 50'000;
    EXPECT_GT(static_cast<double>(updated.end - updated.begin),
              static_cast<double>(update->bytes) / kBytesPerNanosecond);
    for (std::size_t i = 0; i < step.size(); ++i) {
      if (instructions[i].buckets != BucketAction::none) {
        EXPECT_LE(step[i].time.end, updated.begin + kStamps) << instructions[i].kind;
      }
    }
  }
}

}  // namespace
}  // namespace convoy::app

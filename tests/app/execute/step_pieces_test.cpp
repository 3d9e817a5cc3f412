// Tests the pieces into which a step is divided (step_pieces.h). Each piece names the parts of the
// state that it is the first to use. No piece may need a part of the state before it is named.
#include "app/execute/step_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "app/execute/session_tools.h"
#include "comm/single_rank.h"
#include "tests/app/execute/train_step.h"
#include "tests/app/execute/whole_session.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

// A gate that gives a session all the memory it asks for and admits it at once.
class OpenGate final : public DeviceGate {
 public:
  MemoryPlace reserve(const MemoryNeed& need) override {
    MemoryPlace place;
    for (int part = 0; part < kMemoryParts; ++part) {
      memory_.emplace_back(kernels::Backend::cpu, static_cast<std::size_t>(need.bytes[part]));
      place.start[part] = memory_.back().data();
    }
    return place;
  }
  void enter(Use, const Piece&, kernels::Stream) override {}
  void leave(Use, const Piece&, kernels::Stream) noexcept override {}
  void expect_step(bool) noexcept override {}
  void finished(bool) noexcept override {}
  double longest_piece_ms() const override { return 0; }
  bool urgent() const override { return false; }

 private:
  std::vector<kernels::Arena> memory_;
};

struct Run {
  Run(const Network& network, StepOptions options) {
    options.gate = &gate;
    session = std::make_unique<Session>(whole_steps(network, options, rank), options,
                                        RankGroups{&rank, &rank, nullptr});
    StepInput& input = session->input();
    auto* const images = static_cast<float*>(input.images().address);
    const auto count = input.images().desc.shape.elements();
    for (std::int64_t i = 0; i < count; ++i) images[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
    std::iota(input.labels().begin(), input.labels().end(), 0);
    kernels::StepControl& control = input.control();
    control.valid = control.global_valid = static_cast<std::int32_t>(input.labels().size());
    control.learning_rate = 0.05f;
  }
  std::span<std::byte> state() const {
    const MemoryRange& range = session->memory().state();
    return {static_cast<std::byte*>(const_cast<void*>(range.begin)), static_cast<std::size_t>(range.bytes)};
  }

  OpenGate gate;
  comm::SingleRank rank;
  std::unique_ptr<Session> session;
};

// Runs two steps as a whole in one session, and piece by piece in another. In the second session
// the state starts as NaN. Before each piece, only the parts that it names are copied there.
void expect_pieces_bring_all(const Network& network, const StepOptions& options) {
  Run whole(network, options), pieces(network, options);
  for (int step = 0; step < 2; ++step) {
    whole.session->input().control().step = pieces.session->input().control().step =
        static_cast<std::uint64_t>(step);
    test::train_step(*whole.session);
    const Program& program = SessionTools(*pieces.session).programs().train;
    const LanePlan plan = plan_lanes(program, 1);
    const std::vector<StepPiece> divided = divide_step(program, plan, Precision::fp32, 1e-3);
    ASSERT_GT(divided.size(), 5u);
    const std::span<std::byte> state = pieces.state();
    const std::vector<std::byte> saved(state.begin(), state.end());
    std::vector<char> brought(state.size());
    std::ranges::fill(state, std::byte(0xff));
    const auto uses = first_uses(program, plan, divided, pieces.session->memory().state());
    std::size_t first_bytes = 0;
    for (std::size_t piece = 0; piece < divided.size(); ++piece) {
      for (const MemoryRange& range : uses[piece]) {
        const std::ptrdiff_t offset = range.first() - state.data();
        ASSERT_TRUE(offset >= 0 && offset + range.bytes <= std::ssize(state));
        std::memcpy(state.data() + offset, saved.data() + offset, static_cast<std::size_t>(range.bytes));
        const auto first = brought.begin() + offset;
        EXPECT_EQ(std::count(first, first + range.bytes, 1), 0) << "named twice";
        std::fill_n(first, range.bytes, 1);
      }
      if (piece == 0) first_bytes = static_cast<std::size_t>(std::ranges::count(brought, 1));
      for (std::size_t i = divided[piece].first; i < divided[piece].end; ++i)
        program.instructions()[static_cast<std::size_t>(plan.order[i])].launch({});
    }
    EXPECT_LT(first_bytes, state.size() / 2) << "the first piece does not use most of the state";
    for (std::size_t i = 0; i < state.size(); ++i)
      if (brought[i] == 0) state[i] = saved[i];
    EXPECT_TRUE(std::ranges::equal(state, whole.state())) << network.name() << " step " << step;
  }
}

TEST(SharePieces, BringWhatTheStepUses) {
  StepOptions options;
  options.optimizer.averages = true;
  options.clip = true;
  for (const Network& network : {every_op(), residual(), modern()}) expect_pieces_bring_all(network, options);
}

}  // namespace
}  // namespace convoy::app

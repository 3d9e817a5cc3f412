// Tests that sessions of different shapes that take their steps together give every member the bits
// of a training alone, and that they share the batches of one source.
#include "app/execute/joined_sessions.h"

#include "tests/app/execute/members_support.h"

namespace convoy::app {
namespace {

// Counts the batches that are given out and not given back yet.
class CountingSource final : public data::BatchSource, public data::BatchLease::Owner {
 public:
  explicit CountingSource(data::BatchSource& source) : source_(source) {}
  data::BatchLease next() override {
    lease_.emplace(source_.next());
    ++given_, ++lent_;
    return {**lease_, *this, 0};
  }
  std::int64_t steps_per_epoch() const override { return source_.steps_per_epoch(); }
  double wait_ms() const override { return 0; }
  void give_back(int) noexcept override {
    --lent_;
    lease_.reset();
  }
  int given() const { return given_; }
  int lent() const { return lent_; }

 private:
  data::BatchSource& source_;
  std::optional<data::BatchLease> lease_;
  int given_ = 0, lent_ = 0;
};

// Two shapes with two members each, which all train on the batches of one source.
class Joined {
 public:
  explicit Joined(bool averages_of_second = true) {
    for (int shape = 0; shape < 2; ++shape) {
      StepOptions options;
      options.optimizer.averages = shape == 0 || averages_of_second;
      options.members = {numbered_member(0), numbered_member(1)};
      sessions_.push_back(std::make_unique<Session>(shape == 0 ? residual() : rectifying(), options, ranks_));
    }
    joined_ = std::make_unique<JoinedSessions>(std::vector{sessions_[0].get(), sessions_[1].get()});
    data::LoaderOptions feed;
    feed.global_batch = 4;
    feed.mean = {0.4f, 0.5f, 0.6f}, feed.std = {0.2f, 0.3f, 0.4f};
    loader_ = std::make_unique<data::Loader>(set_, feed);
    source_ = std::make_unique<CountingSource>(*loader_);
  }

  void train(int steps) {
    for (int i = 0; i < steps; ++i, ++step_) {
      joined_->load(source_->next(), all_);
      for (const int member : all_) {
        joined_->control(member).step = static_cast<std::uint64_t>(step_);
        joined_->control(member).learning_rate = 0.02f;
      }
      joined_->start_train_step(false);
      joined_->finish_members();
    }
  }
  std::vector<StepMetrics> evaluate(bool averages) {
    const JoinedSessions::MemberBatches group{source_.get(), all_};
    return joined_->evaluate({&group, 1}, 0, averages);
  }
  JoinedSessions& joined() { return *joined_; }
  CountingSource& source() { return *source_; }
  CheckpointState state(int member) {
    CheckpointState state;
    SessionState(joined_->session_of(member), member % 2).capture(state);
    return state;
  }

 private:
  comm::SingleRank ranks_;
  std::shared_ptr<data::RandomImages> set_ =
      std::make_shared<data::RandomImages>(data::ImageShape{8, 8, 3}, 5, 30, 3);
  std::unique_ptr<data::Loader> loader_;
  std::unique_ptr<CountingSource> source_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::unique_ptr<JoinedSessions> joined_;
  const std::vector<int> all_{0, 1, 2, 3};
  int step_ = 0;
};

// Two joined sessions, of which one trains alone after its first members retire.
TEST(JoinedSessions, TakeEachBatchOnce) {
  Joined run;
  run.train(3);
  EXPECT_EQ(run.source().given(), 3) << "four members of two shapes train on one batch";
  EXPECT_EQ(run.source().lent(), 0);
  EXPECT_EQ(run.joined().members(), 4);
  EXPECT_NE(&run.joined().session_of(1), &run.joined().session_of(2));
}

TEST(JoinedSessions, AShapeWithoutMembersThatTrainStops) {
  Joined all, rest;
  all.train(2), rest.train(2);
  const CheckpointState retired = rest.state(3);
  rest.joined().retire(2), rest.joined().retire(3);
  all.train(2), rest.train(2);
  for (const int member : {0, 1}) expect_same_member(rest.state(member), all.state(member), member);
  expect_same_member(rest.state(3), retired, 3);
  EXPECT_EQ(rest.source().lent(), 0);
  EXPECT_EQ(rest.evaluate(false)[2].samples, 0);
}

TEST(JoinedSessions, EvaluateTheAveragesOfSessionsThatHaveThem) {
  Joined run(false);
  run.train(3);
  const CheckpointState before = run.state(0);
  const int batches = run.source().given();
  const std::vector<StepMetrics> values = run.evaluate(false), averages = run.evaluate(true);
  EXPECT_EQ(run.source().given(), batches + 2 * run.source().steps_per_epoch());
  for (const int member : {0, 1}) {
    EXPECT_EQ(averages[static_cast<std::size_t>(member)].samples, 30);
    EXPECT_NE(averages[static_cast<std::size_t>(member)].loss(),
              values[static_cast<std::size_t>(member)].loss());
  }
  EXPECT_EQ(averages[2].samples, 0) << "this session has no averages";
  EXPECT_EQ(values[2].samples, 30);
  expect_same_member(run.state(0), before, 0);
  run.train(1);
  EXPECT_EQ(run.source().lent(), 0) << "both sessions train again";
}

TEST(JoinedSessions, WorkIsSpreadEvenly) {
  EXPECT_EQ(spread(std::vector<double>{1, 4, 16, 64}, 2), (std::vector{1, 1, 1, 0}));
  EXPECT_EQ(spread(std::vector<double>{5, 5, 4, 3, 3}, 2), (std::vector{0, 1, 0, 1, 1}));
  EXPECT_EQ(spread(std::vector<double>{2, 3}, 1), (std::vector{0, 0}));
  EXPECT_TRUE(spread({}, 3).empty());
}

}  // namespace
}  // namespace convoy::app

// Trains several members (trainings) in one session, and each of them in a session of its own, on
// the same batches, to compare the bits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "app/execute/joined_sessions.h"
#include "app/training/checkpoint/session_state.h"
#include "comm/single_rank.h"
#include "data/loader/loader.h"
#include "data/synthetic/random_images.h"
#include "kernels/device/device_memory.h"
#include "tests/app/execute/whole_session.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {

// Returns a member. Each number gives other hyperparameters and another seed.
inline Member numbered_member(int number) {
  const auto n = static_cast<float>(number);
  Member member;
  member.seed = 100 + static_cast<std::uint64_t>(number);
  member.hyperparameters = {.momentum = 0.9f - 0.01f * n,
                            .weight_decay = 1e-4f * n,
                            .beta1 = 0.8f + 0.001f * n,
                            .epsilon = 1e-6f * (n + 1),
                            .label_smoothing = 0.005f * n,
                            .nesterov = number % 2,
                            .average_decay = 0.5 + 0.005 * number,
                            .largest_norm = 0.5 + 0.1 * number};
  return member;
}

// Trains `count` members from number `first` on. Members with even numbers have one sequence of
// batches, members with odd numbers another. Each batch is loaded once for all its members.
class MembersRun {
 public:
  MembersRun(const Network& network, StepOptions options, int first, int count) : first_(first) {
    options.members.clear();
    for (int i = 0; i < count; ++i) options.members.push_back(numbered_member(first + i));
    options.optimizer.averages = true;
    options.clip = options.early_update_bytes > 0;  // with clipping there are no early updates
    const Shape& shape = network.shape(0);
    set_ = std::make_shared<data::RandomImages>(data::ImageShape{shape[2], shape[3], 3}, 5, 30, 3);
    const bool streamed = options.backend == kernels::Backend::cuda;
    if (streamed) stream(options, shape);
    options.input.batches = std::min(count, 2);
    session_ = std::make_unique<Session>(whole_steps(network, options, ranks_), options,
                                         RankGroups{&ranks_, &ranks_, nullptr});
    for (int group = 0; group < std::min(count, 2); ++group) {
      data::LoaderOptions feed;
      feed.global_batch = shape[0];
      feed.seed = static_cast<std::uint64_t>((first + group) % 2);
      feed.augmentation = data::parse_augmentation("crop:2,flip,cutout:3");
      feed.mean = {0.4f, 0.5f, 0.6f}, feed.std = {0.2f, 0.3f, 0.4f};
      if (streamed) feed.output = data::BatchOutput::cuts, feed.memory = &kernels::pinned_memory();
      feed.buffers += kRingSlots;
      loaders_.push_back(std::make_unique<data::Loader>(set_, feed));
    }
  }
  // The session ends before the loaders, whose batches it holds.
  ~MembersRun() { session_.reset(); }

  void train(int steps) {
    for (int i = 0; i < steps; ++i, ++step_) {
      for (std::size_t group = 0; group < loaders_.size(); ++group)
        session_->input().load(loaders_[group]->next(), 0, members_of(static_cast<int>(group)));
      for (int member = 0; member < session_->memory().members(); ++member) {
        kernels::StepControl& control = session_->input().control(member);
        control.step = static_cast<std::uint64_t>(step_);
        control.learning_rate = 0.01f * static_cast<float>(1 + (first_ + member) % 5);
      }
      session_->start(StepKind::train);
      if (session_->steps_in_flight() > session_->steps_ahead()) session_->finish_step();
    }
    while (session_->steps_in_flight() > 0) session_->finish_step();
  }

  Session& session() { return *session_; }
  // Returns the loss of a member in an evaluation on the next batches.
  double loss(int member) {
    std::vector<JoinedSessions::MemberBatches> groups;
    for (std::size_t group = 0; group < loaders_.size(); ++group)
      groups.push_back({loaders_[group].get(), members_of(static_cast<int>(group))});
    return JoinedSessions({session_.get()}).evaluate(groups)[static_cast<std::size_t>(member)].loss();
  }
  CheckpointState state(int member) {
    CheckpointState state;
    SessionState(*session_, member).capture(state);
    return state;
  }

 private:
  std::vector<int> members_of(int group) const {
    std::vector<int> members;
    for (int member = group; member < session_->memory().members(); member += 2) members.push_back(member);
    return members;
  }
  void stream(StepOptions& options, const Shape& shape) const {
    options.input.kind = InputOptions::Kind::streamed;
    options.input.mean = {0.4f, 0.5f, 0.6f}, options.input.std = {0.2f, 0.3f, 0.4f};
    options.input.stored = set_->shape();
    options.input.batch_bytes = data::cut_capacity(set_->shape(), set_->shape(), shape[0]);
  }

  const int first_;
  comm::SingleRank ranks_;
  std::shared_ptr<data::RandomImages> set_;
  std::vector<std::unique_ptr<data::Loader>> loaders_;
  std::unique_ptr<Session> session_;
  int step_ = 0;
};

inline void expect_same_member(const CheckpointState& found, const CheckpointState& alone, int member) {
  for (const auto list : {&CheckpointState::parameters, &CheckpointState::statistics,
                          &CheckpointState::optimizer, &CheckpointState::averages}) {
    ASSERT_EQ((found.*list).size(), (alone.*list).size());
    for (std::size_t i = 0; i < (found.*list).size(); ++i)
      EXPECT_EQ((found.*list)[i].values, (alone.*list)[i].values)
          << (alone.*list)[i].name << " of member " << member;
  }
}

// Expects that every `every`-th member gets the bits of a training alone.
inline void expect_members_as_alone(const Network& network, const StepOptions& options, int count, int steps,
                                    int every = 1) {
  MembersRun all(network, options, 0, count);
  all.train(steps);
  for (int member = 0; member < count; member += every) {
    MembersRun alone(network, options, member, 1);
    alone.train(steps);
    expect_same_member(all.state(member), alone.state(0), member);
  }
}

}  // namespace convoy::app

// Runs sessions of several shapes together, on a host or on a GPU, with batches from one source.
#pragma once

#include <deque>
#include <optional>

#include "tests/app/execute/members_support.h"
#include "tests/app/execute/whole_session.h"

namespace convoy::app {

// Counts the batches that were taken from `source`, and those that are not given back yet.
class CountingSource final : public data::BatchSource, public data::BatchLease::Owner {
 public:
  explicit CountingSource(data::BatchSource& source) : source_(source) {}
  data::BatchLease next() override {
    data::BatchLease lease = source_.next();
    const data::Batch& batch = *lease;
    leases_.emplace_back(std::move(lease));
    ++lent_;
    return {batch, *this, given_++};
  }
  std::int64_t steps_per_epoch() const override { return source_.steps_per_epoch(); }
  double wait_ms() const override { return 0; }
  void give_back(int slot) noexcept override {
    --lent_;
    leases_[static_cast<std::size_t>(slot)].reset();
  }
  int given() const { return given_; }
  int lent() const { return lent_; }

 private:
  data::BatchSource& source_;
  std::deque<std::optional<data::BatchLease>> leases_;
  int given_ = 0, lent_ = 0;
};

// Trains two members of each network: each session has one network and runs two trainings. The
// images have 8 x 8 pixels, and all members train on the same batches.
class JoinedRun {
 public:
  using Kind = InputOptions::Kind;
  JoinedRun(const std::vector<Network>& networks, StepOptions options, Kind kind = Kind::filled) {
    const data::ImageShape image = set_->shape();
    options.clip = true;
    options.input.kind = kind;
    options.members = {numbered_member(0), numbered_member(1)};
    if (kind != Kind::filled) {
      options.input.mean = feed_.mean, options.input.std = feed_.std;
      options.input.stored = image;
      options.input.batch_bytes = data::cut_capacity(image, image, 4);
      feed_.output = kind == Kind::streamed ? data::BatchOutput::cuts : data::BatchOutput::transforms;
      if (kind == Kind::streamed) feed_.memory = &kernels::pinned_memory();
    }
    std::vector<Session*> joined;
    for (const Network& network : networks) {
      options.input.resident_images = joined.empty() ? set_->size() : 0;
      sessions_.push_back(std::make_unique<Session>(whole_steps(network, options, ranks_), options,
                                                    RankGroups{&ranks_, &ranks_, nullptr}));
      if (kind == Kind::resident && !joined.empty())
        sessions_.back()->input().read_images_of(joined[0]->input());
      joined.push_back(sessions_.back().get());
    }
    if (kind == Kind::resident) put_images(*sessions_[0]);
    joined_ = std::make_unique<JoinedSessions>(std::move(joined));
    for (int member = 0; member < joined_->members(); ++member) all_.push_back(member);
    loader_ = std::make_unique<data::Loader>(set_, feed_);
    source_ = std::make_unique<CountingSource>(*loader_);
  }

  void train(int steps) {
    for (int i = 0; i < steps; ++i, ++step_) {
      joined_->load(source_->next(), all_);
      for (const int member : all_) {
        joined_->control(member).step = static_cast<std::uint64_t>(step_);
        joined_->control(member).learning_rate = 0.02f;
      }
      joined_->start(StepKind::train);
      if (joined_->steps_in_flight() > joined_->steps_ahead()) joined_->finish_step();
    }
    while (joined_->steps_in_flight() > 0) joined_->finish_step();
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
  void put_images(Session& session) const {
    std::vector<std::uint8_t> scratch(static_cast<std::size_t>(set_->largest_bytes()));
    for (std::int64_t i = 0; i < set_->size(); ++i)
      session.tensors().put_image(i, set_->stored(i, scratch).data(), 1);
  }
  static data::LoaderOptions feed() {
    data::LoaderOptions feed;
    feed.global_batch = 4;
    feed.mean = {0.4f, 0.5f, 0.6f}, feed.std = {0.2f, 0.3f, 0.4f};
    feed.augmentation = data::parse_augmentation("crop:2,flip");
    feed.buffers += kRingSlots;
    return feed;
  }

  comm::SingleRank ranks_;
  data::LoaderOptions feed_ = feed();
  const std::shared_ptr<data::RandomImages> set_ =
      std::make_shared<data::RandomImages>(data::ImageShape{8, 8, 3}, 5, 30, 3);
  // The objects below are destroyed from the last to the first. So the sessions end before the
  // loader, whose batches they hold.
  std::unique_ptr<data::Loader> loader_;
  std::unique_ptr<CountingSource> source_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::unique_ptr<JoinedSessions> joined_;
  std::vector<int> all_;
  int step_ = 0;
};

}  // namespace convoy::app

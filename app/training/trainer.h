// Runs one training, or several trainings together (members, members.h). It runs the epochs of
// steps, evaluates, saves checkpoints and writes metrics. Every rank runs the same code.
//
// Members are spread over the ranks. Each rank trains its members without the other ranks. But
// before every step all ranks agree whether to stop, so they are always at the same step.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/concurrency/lane_choice.h"
#include "app/execute/joined_sessions.h"
#include "app/model_parallel/plan.h"
#include "app/training/dataset.h"
#include "app/training/initial_weights.h"
#include "app/training/members.h"
#include "app/training/report/trace.h"
#include "app/training/run_host.h"
#include "app/training/run_lock.h"
#include "app/training/run_ranks.h"
#include "app/training/stream_choice.h"
#include "app/training/train_options.h"
#include "app/training/training.h"

namespace convoy::app {

class Trainer {
 public:
  // Does all that comes before the first step: checks, data, session, and the state to resume from.
  // `members` has the options of every member, all with the folder of the whole run as `out`. It is
  // empty if one training runs alone. Collective.
  Trainer(const TrainOptions& options, const RunHost& host, std::vector<TrainOptions> members = {});
  ~Trainer() { end_shapes(); }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Returns the exit status: 75 after a checkpoint that a signal requested, else 0.
  int run();

 private:
  using Clock = std::chrono::steady_clock;

  // Functions of the set-up, in trainer_setup.cpp, trainer_shapes.cpp and trainer_session.cpp.
  void check_ranks();
  void open_data();
  void make_trainings();
  struct Shape;
  void make_shapes();
  void end_shapes();
  void keep_own_members();
  void make_sessions();
  Network make_replica_network(const TrainOptions& options) const;
  FitRows set_values(Network& network, const TrainOptions& options) const;
  // Returns the network with the outputs, the drop path and the parametrisation that the options
  // request.
  Network trained(Network network, const TrainOptions& options) const;
  int prepare(Shape& shape);
  StepOptions session_options(std::size_t shape) const;
  void compile_shapes();
  void check_members_fit() const;
  void bind_session(Shape& shape);
  void draw_other_weights(const Shape& shape);
  std::int64_t arena_bytes() const;
  std::vector<MemoryUse> memory_uses() const;
  void start_reports();
  void start_sources();
  PlannedWork planned_work() const;
  void obey_signals() const;
  void refuse_second_run() const;
  std::int64_t replica_capacity() const;
  Dataset& dataset_of(const TrainOptions& options);
  const TrainOptions& options_of(std::size_t own) const;
  const Shape& shape_of(std::size_t own) const;
  std::vector<std::vector<int>> data_groups() const;

  // Functions for resuming and for members, in trainer_members.cpp.
  void resume();
  std::int64_t common_checkpoint() const;
  void agree_to_go_on();
  void note_results();
  void retire(std::size_t own, std::int64_t step, const std::string& reason);
  // Stops the worse half of the members and makes new sessions for the others. If no member has to
  // stop, returns false and changes nothing.
  bool halve();
  void finish_members();
  void say(const std::string& line);
  void choose_streams(double step_ms);

  void finish();
  void start_step(bool stop_requested);
  void start_part(std::int64_t part, bool last, bool stop_requested);
  void load_batches(std::int64_t part);
  void finish_steps(int left_in_flight);
  StartedStep timed(StartedStep step);
  void finish_part(const StartedStep& step, std::span<const StepMetrics> metrics);
  bool evaluation_is_due() const;
  std::int64_t checkpoint_interval() const;
  bool checkpoint_is_due() const;
  bool halving_is_due() const;
  // Tests all trainings. Returns whether at least one has reached its best accuracy so far.
  bool evaluate();
  void save_checkpoints(bool only_best);
  // Calls body(index) for each member of this rank that has not diverged.
  template <typename Body>
  void for_live(const Body& body) {
    for (std::size_t i = 0; i < own_.size(); ++i)
      if (live_[i]) body(i);
  }
  double data_wait_ms() const;

  // The options of the run. With members: the options of the first member, with the whole run's
  // folder.
  TrainOptions options_;
  const RunHost host_;
  comm::MpiEnvironment& environment_;
  const StopRequest& signals_;
  const comm::Communicator& world_;
  std::unique_ptr<Members> members_;  // null if one training runs alone
  // With members: a communicator of this rank alone.
  std::optional<comm::Communicator> solo_;
  // The ranks that run a training together: this rank alone with --members, else all ranks.
  const comm::Communicator* ranks_;
  int threads_ = 1;
  std::unique_ptr<RunRanks> run_ranks_;
  std::unique_ptr<Dataset> dataset_;
  // The synthetic data of members whose seed differs from that of options_, by seed.
  std::map<std::int64_t, std::unique_ptr<Dataset>> synthetic_;
  Dataset::Delivery delivery_;
  // A source of batches, and the members of this rank that train or are tested on its batches.
  // Sources must outlive the sessions, because the device of a session may still use a batch.
  struct Source {
    std::unique_ptr<data::BatchSource> batches;
    std::vector<int> members;
  };
  std::vector<Source> train_sources_, test_sources_;
  std::optional<PartitionPlan> plan_;
  // The trainings of this rank that share a compiled step: members (member_keys.h), or the only
  // training.
  struct Shape {
    TrainOptions options;      // options of the first member of the shape, which may train on another rank
    std::vector<int> members;  // this rank's members of the shape, by their numbers in members_
    double work = 0;           // operations of a forward pass, summed over `members`
    std::string structure_sha256;  // of a model file's structure; empty for a built-in network
    std::int64_t frozen_parameters = 0;
    FitRows initial_weights;
    std::optional<LaneChoice> lanes;  // set only with --lanes auto
    // The session is made from `network` and `steps`, which are empty afterwards.
    std::optional<Network> network;
    StepOptions step;
    std::optional<CompiledSteps> steps;
    std::unique_ptr<Session> session;
    // The index of the shape's first member in own_, states_, trainings_, live_ and better_.
    std::size_t first = 0;
  };
  std::vector<Shape> shapes_;
  std::unique_ptr<JoinedSessions> sessions_;  // null on a rank without members
  std::optional<StreamChoice> streams_;       // not set if all members share one compiled step
  // The vectors from here to better_ have one element per member of this rank, in the order of
  // shapes_.
  std::vector<int> own_;  // the member's number in members_
  // The tensors of each member, until make_trainings() moves them to its training.
  std::vector<std::unique_ptr<SessionState>> states_;
  std::vector<std::unique_ptr<Training>> trainings_;
  std::vector<char> live_;  // 0 if the member diverged
  // Whether the member's last test had its best accuracy so far.
  std::vector<char> better_;
  // With members, on rank 0: the lock of the whole run's folder.
  std::unique_ptr<RunLock> lock_;
  // With members, on rank 0: the progress of the whole run.
  std::unique_ptr<Progress> progress_;
  RecentRate rate_;
  std::unique_ptr<Trace> trace_;       // null without --trace
  std::deque<StartedStep> in_flight_;  // started steps that are not finished, the oldest first
  Clock::time_point last_finished_;
  std::int64_t steps_per_epoch_ = 0, total_steps_ = 0, step_ = 0;
  // The number of members that still train, counted over all ranks.
  std::int64_t all_live_ = 1;
  // The step of the checkpoint from which the run was resumed; 0 if there is none.
  std::int64_t resumed_ = 0;
  // Whether all ranks know that one of them got a signal to stop.
  bool stop_requested_ = false;
  bool halved_ = false;  // whether --halving has stopped members and made new sessions
};

}  // namespace convoy::app

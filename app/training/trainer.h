// Runs a training, or many members of one: epochs of steps, evaluation, checkpoints and metrics.
// Every rank runs the same code.
// Members are spread over the ranks, and each rank trains its own alone, as if it were the only
// rank of their runs. The ranks agree after every step whether to stop, so they are always at the
// same step.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/execute/session.h"
#include "app/model_parallel/plan.h"
#include "app/training/dataset.h"
#include "app/training/initial_weights.h"
#include "app/training/members.h"
#include "app/training/report/trace.h"
#include "app/training/run_lock.h"
#include "app/training/run_ranks.h"
#include "app/training/signals.h"
#include "app/training/train_options.h"
#include "app/training/training.h"
#include "comm/placement/environment.h"

namespace convoy::app {

class Trainer {
 public:
  // Decides and checks everything before the first step. `members`: the options of every member,
  // with the same `out` as `options`; empty if one trains alone. Collective.
  Trainer(const TrainOptions& options, comm::MpiEnvironment& environment, const StopSignals& signals,
          std::vector<TrainOptions> members = {});

  // Returns the exit status: 75 after a checkpoint that a signal requested, else 0.
  int run();

 private:
  using Clock = std::chrono::steady_clock;

  // Set-up (trainer_setup.cpp).
  void check_ranks();
  void open_data();
  void make_trainings();
  void make_session();
  Network make_replica_network() const;
  Network trained(Network network) const;  // with the outputs and the drop path of the options
  void prepare(Network& network);
  StepOptions session_options() const;
  void bind_session(const Network& network, const StepOptions& options);
  void check_members_fit(const CompiledSteps& steps, const StepOptions& options) const;
  void draw_other_weights();
  void start_reports();
  void start_sources();
  void obey_signals() const;
  void refuse_second_run() const;
  std::int64_t replica_capacity() const;
  Dataset& dataset_of(const TrainOptions& options);
  const TrainOptions& options_of(std::size_t own) const;
  std::vector<std::vector<int>> data_groups() const;

  // Resuming, members and the end (trainer_members.cpp).
  void resume();
  std::int64_t common_checkpoint() const;
  void agree_to_go_on();
  void note_results();
  void retire(std::size_t own, std::int64_t step, const std::string& reason);
  bool halve();  // returns whether members were stopped and the session was made anew
  void finish_members();
  void say(const std::string& line);

  void finish();
  void start_step(bool stop_requested);
  void start_part(std::int64_t part, bool last, bool stop_requested);
  void load_batches(std::int64_t part);
  void finish_steps(int left_in_flight);
  StartedStep timed(StartedStep step);
  void finish_part(const StartedStep& step, std::span<const StepMetrics> metrics);
  bool evaluation_is_due() const;
  bool checkpoint_is_due() const;
  bool halving_is_due() const;
  bool evaluate();  // returns whether a training is the best so far
  void save_checkpoints(bool only_best);
  // Calls body(member of the session) for those that have not diverged.
  template <typename Body>
  void for_live(const Body& body) {
    for (std::size_t i = 0; i < own_.size(); ++i)
      if (live_[i]) body(i);
  }
  double data_wait_ms() const;

  TrainOptions options_;          // with members those of the first one, in the folder of all
  std::string structure_sha256_;  // of a model file
  comm::MpiEnvironment& environment_;
  const StopSignals& signals_;
  const comm::Communicator& world_;
  std::unique_ptr<Members> members_;        // null if one trains alone
  std::optional<comm::Communicator> solo_;  // with members: this rank
  const comm::Communicator* ranks_;         // that run a training together: the world, or this rank
  int threads_ = 1;
  std::unique_ptr<RunRanks> run_ranks_;
  std::unique_ptr<Dataset> dataset_;
  std::map<std::int64_t, std::unique_ptr<Dataset>> synthetic_;  // of members with other seeds, by seed
  Dataset::Delivery delivery_;
  // One for the members of a session that see the same batches. They outlive the session, whose
  // device may hold batches.
  struct Source {
    std::unique_ptr<data::BatchSource> batches;
    std::vector<int> members;
  };
  std::vector<Source> train_sources_, test_sources_;
  std::optional<PartitionPlan> plan_;
  std::int64_t frozen_parameters_ = 0;
  FitRows initial_weights_;
  std::unique_ptr<Session> session_;  // null on a rank without members
  // By member of the session.
  std::vector<int> own_;                               // its number in members_
  std::vector<std::unique_ptr<SessionState>> states_;  // until a training takes it
  std::vector<std::unique_ptr<Training>> trainings_;
  std::vector<char> live_;              // false: it diverged
  std::vector<char> better_;            // at the last test
  std::unique_ptr<RunLock> lock_;       // with members, on rank 0
  std::unique_ptr<Progress> progress_;  // likewise
  RecentRate rate_;
  std::unique_ptr<Trace> trace_;       // with --trace
  std::deque<StartedStep> in_flight_;  // oldest first
  Clock::time_point last_finished_;
  std::int64_t steps_per_epoch_ = 0, total_steps_ = 0, step_ = 0;
  std::int64_t all_live_ = 1;    // members that train, on all ranks
  std::int64_t resumed_ = 0;     // step of the checkpoint that the run went on from; 0: none
  bool stop_requested_ = false;  // by any rank, in a finished step
  bool halved_ = false;          // the session was made anew
};

}  // namespace convoy::app

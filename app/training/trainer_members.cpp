// Implements how the trainer resumes a run and how it ends members (trainings that run together): a
// member that diverged, the worse half of the members, or all of them at the end of the run.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>

#include "app/execute/run_on_all_ranks.h"
#include "app/training/trainer.h"

namespace convoy::app {

// Returns the newest step for which all trainings of all ranks have a complete checkpoint, or 0 if
// there is none.
std::int64_t Trainer::common_checkpoint() const {
  std::int64_t bound = std::numeric_limits<std::int64_t>::max();
  while (true) {
    std::int64_t lowest = bound, highest = 0;
    run_on_all_ranks(world_, [&] {
      for (const auto& training : trainings_) {
        const std::int64_t step = training->newest_checkpoint(bound);
        lowest = std::min(lowest, step), highest = std::max(highest, step);
      }
    });
    lowest = world_.all_reduce(lowest, comm::ReduceOp::min, "resumed step");
    highest = world_.all_reduce(highest, comm::ReduceOp::max, "resumed step");
    if (lowest >= highest) return highest;
    if (!members_)
      throw std::runtime_error(
          fmt::format("{}: ranks see different checkpoints, of steps {} to {}; --out must be a folder "
                      "that all hosts share",
                      options_.out, lowest, highest));
    bound = lowest;
  }
}

void Trainer::resume() {
  if (!options_.resume) return;
  const std::int64_t step = common_checkpoint();
  resumed_ = step;
  step_ = step;
  if (step == 0) return;
  run_on_all_ranks(world_, [&] {
    for (std::size_t i = 0; i < own_.size(); ++i) trainings_[i]->resume(dataset_of(options_of(i)), step);
  });
}

// Finds out whether any rank has got a signal, and how many members of all ranks still train. After
// a signal, all ranks stop after the next step. Collective.
void Trainer::agree_to_go_on() {
  std::array<std::int64_t, 2> counts{signals_.received() != 0 ? 1 : 0, std::ranges::count(live_, 1)};
  world_.all_reduce(std::span<std::int64_t>(counts), comm::ReduceOp::sum, "members that train");
  stop_requested_ = counts[0] > 0;
  all_live_ = counts[1];
}

void Trainer::retire(std::size_t own, std::int64_t step, const std::string& reason) {
  live_[own] = 0;
  sessions_->retire(static_cast<int>(own));
  MemberResult& result = members_->result(own_[own]);
  result.status = MemberStatus::diverged;
  result.steps = step;
  result.loss = trainings_[own]->last_loss();
  spdlog::warn("member {} stops: {}", own_[own] + 1, reason);
}

// Gives every rank the results of all members, and writes members.csv. Collective.
void Trainer::note_results() {
  for_live([&](std::size_t i) {
    MemberResult& result = members_->result(own_[i]);
    const Training& training = *trainings_[i];
    result.steps = step_;
    result.loss = training.last_loss();
    result.accuracy = training.last_accuracy();
    result.best_accuracy = training.best_accuracy() < 0 ? std::nan("") : training.best_accuracy();
    result.parameters_sha256 = training.parameters_sha256();
  });
  members_->share(world_, own_);
  run_on_all_ranks(world_, [&] {
    if (world_.rank() == 0) members_->write();
  });
}

// Writes members.csv, which says who has stopped, and then the checkpoints. If the process is
// killed in between, the resumed run does not halve again at this step, and the remaining members
// resume from their previous checkpoints.
bool Trainer::halve() {
  const std::vector<int> stopped = members_->halve(step_);
  if (stopped.empty()) return false;
  run_on_all_ranks(world_, [&] {
    if (world_.rank() == 0) members_->write();
  });
  save_checkpoints(false);
  run_on_all_ranks(world_, [&] {
    for_live([&](std::size_t i) {
      if (std::ranges::find(stopped, own_[i]) != stopped.end()) trainings_[i]->finish(step_, arena_bytes());
    });
  });
  note_results();
  say(fmt::format("halving after step {}: {} of {} members stop", step_, stopped.size(),
                  stopped.size() + members_->running().size()));
  trainings_.clear();
  states_.clear();
  end_shapes();  // first, because devices may still use batches of the sources
  train_sources_.clear();
  test_sources_.clear();
  world_.barrier("members that stopped");
  options_.resume = true, options_.overwrite = false;
  halved_ = true;
  make_trainings();
  last_finished_ = Clock::now();
  return true;
}

void Trainer::finish_members() {
  const bool nothing_to_do = members_->running().empty();
  if (!nothing_to_do && resumed_ == total_steps_ && dataset_->test_size() > 0) evaluate();
  run_on_all_ranks(world_, [&] {
    for_live([&](std::size_t i) {
      trainings_[i]->finish(step_, arena_bytes());
      members_->result(own_[i]).status = MemberStatus::finished;
    });
  });
  note_results();
  const auto diverged = [&](int member) { return members_->result(member).status == MemberStatus::diverged; };
  int left = 0;
  for (int member = 0; member < members_->size(); ++member) left += diverged(member) ? 0 : 1;
  if (progress_) progress_->finish();
  run_on_all_ranks(world_, [&] {
    if (left == 0 && world_.rank() == 0)
      throw DivergenceError(
          fmt::format("all members diverged; {}/members.csv says after which step", options_.out));
  });
  if (world_.rank() != 0) return;
  *host_.output << members_->table();
  if (nothing_to_do) *host_.output << "all steps were done before; nothing was changed\n";
  host_.output->flush();
}

}  // namespace convoy::app

// The members of `convoy train --members`: their options, what became of them, and members.csv.
// Every rank has the whole table.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "app/training/train_options.h"
#include "comm/communicator.h"

namespace convoy::app {

enum class MemberStatus : std::uint8_t {
  running,   // or interrupted: --resume goes on
  finished,  // trained to the end
  stopped,   // by --halving
  diverged   // its loss was not finite
};

template <>
inline constexpr auto kChoices<MemberStatus> =
    std::to_array<Choice<MemberStatus>>({{"running", MemberStatus::running},
                                         {"finished", MemberStatus::finished},
                                         {"stopped", MemberStatus::stopped},
                                         {"diverged", MemberStatus::diverged}});

// A number that is not known is NaN.
struct MemberResult {
  MemberStatus status = MemberStatus::running;
  std::int64_t steps = 0;  // trained
  double loss = std::numeric_limits<double>::quiet_NaN();
  double accuracy = std::numeric_limits<double>::quiet_NaN(),
         best_accuracy = std::numeric_limits<double>::quiet_NaN();
  std::string parameters_sha256 = {};
};

class Members {
 public:
  // `options`: of every member, with the run's folder as `out`. Throws UsageError unless they can
  // be trained by one step: they must agree about all that is not data of the step, and no two may
  // be the same.
  explicit Members(std::vector<TrainOptions> options);

  int size() const { return static_cast<int>(options_.size()); }
  // The options of a member, with its own folder OUT/members/NUMBER. Members are numbered from 1 in
  // names and from 0 here.
  const TrainOptions& options(int member) const { return options_.at(static_cast<std::size_t>(member)); }
  MemberResult& result(int member) { return results_.at(static_cast<std::size_t>(member)); }
  const MemberResult& result(int member) const { return results_.at(static_cast<std::size_t>(member)); }
  std::vector<int> running() const;
  // Returns the running members that a rank trains: consecutive ones, as many as on other ranks or
  // one more.
  std::vector<int> of_rank(int ranks, int rank) const;

  // Takes the results from members.csv of the run to resume, if there is one. A member that
  // finished a shorter run goes on. Throws UsageError if it lists another number of members.
  void read(std::int64_t total_steps);
  void write() const;  // members.csv, whole or not at all
  // Takes the results of the members that each rank trains. Collective.
  void share(const comm::Communicator& ranks, const std::vector<int>& own);

  // Stops the worse half of the running members by test accuracy, the later ones among equals, and
  // returns them. Returns none if a round at this step was done before or if fewer than two run.
  std::vector<int> halve(std::int64_t step);

  // The keys in which members differ, and the values of one as text: "seed=3, learning-rate=0.1".
  const std::vector<std::string>& differing() const { return differing_; }
  std::string describe(int member) const;
  // The closing table with mean, deviation and best.
  std::string table() const;

 private:
  std::string csv_path() const { return out_ + "/members.csv"; }

  std::string out_;
  std::vector<TrainOptions> options_;
  std::vector<MemberResult> results_;
  std::vector<std::string> differing_;
};

}  // namespace convoy::app

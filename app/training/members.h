// Holds the members of `convoy train --members`, which are trainings that run together: their
// options, their results, and the file members.csv. Every rank has all members.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "app/training/train_options.h"
#include "comm/communicator.h"

namespace convoy::app {

enum class MemberStatus : std::uint8_t {
  // The member trains, or was interrupted and goes on with --resume.
  running,
  finished,  // the member was trained to the end
  stopped,   // --halving stopped the member
  diverged   // the loss of the member was not finite
};

template <>
inline constexpr auto kChoices<MemberStatus> =
    std::to_array<Choice<MemberStatus>>({{"running", MemberStatus::running},
                                         {"finished", MemberStatus::finished},
                                         {"stopped", MemberStatus::stopped},
                                         {"diverged", MemberStatus::diverged}});

// The result of a member. A number that is not known is NaN.
struct MemberResult {
  MemberStatus status = MemberStatus::running;
  std::int64_t steps = 0;  // the number of trained steps
  double loss = std::numeric_limits<double>::quiet_NaN();
  double accuracy = std::numeric_limits<double>::quiet_NaN(),
         best_accuracy = std::numeric_limits<double>::quiet_NaN();
  std::string parameters_sha256 = {};
};

class Members {
 public:
  // `options` has one element per member, whose `out` is the folder of the whole run. Throws
  // UsageError if members differ in an option that must be the same for all (member_keys.h), or if
  // two members have the same options.
  explicit Members(std::vector<TrainOptions> options);

  int size() const { return static_cast<int>(options_.size()); }
  // Returns the options of a member, whose folder is OUT/members/NUMBER. `member` counts from 0,
  // but NUMBER counts from 1.
  const TrainOptions& options(int member) const { return options_.at(static_cast<std::size_t>(member)); }
  MemberResult& result(int member) { return results_.at(static_cast<std::size_t>(member)); }
  const MemberResult& result(int member) const { return results_.at(static_cast<std::size_t>(member)); }
  std::vector<int> running() const;
  // Returns the running members in groups. The members of a group share a compiled step: they have
  // the same shape (member_keys.h). The groups are in the order of their first members.
  std::vector<std::vector<int>> shapes() const;

  // Reads the results from members.csv of the run to resume, if the file exists. A member that
  // finished after fewer than `total_steps` steps runs again, because the resumed run is longer.
  // Throws UsageError if the file has another number of members.
  void read(std::int64_t total_steps);
  // Replaces members.csv atomically.
  void write() const;
  // Gives every rank the results of all members. `own` lists the members that this rank trains,
  // whose results it sends to the other ranks. Collective.
  void share(const comm::Communicator& ranks, const std::vector<int>& own);

  // Stops those running members that have the lowest test accuracies, half of them (rounded down),
  // and returns them. Of members with equal accuracies, those with higher numbers stop first.
  // Returns none if fewer than two members run, or if members were stopped at this step before the
  // run was resumed.
  std::vector<int> halve(std::int64_t step);

  // differing() returns the names of the options in which members differ. describe() returns a
  // member's values of these options, for example "seed=3, learning-rate=0.1".
  const std::vector<std::string>& differing() const { return differing_; }
  std::string describe(int member) const;
  // Returns the table that is printed at the end of a run. It has a row for each member. The last
  // line has the means and deviations of the finished members' losses and test accuracies, and the
  // best of these accuracies.
  std::string table() const;

 private:
  std::string csv_path() const { return out_ + "/members.csv"; }

  std::string out_;
  std::vector<TrainOptions> options_;
  std::vector<MemberResult> results_;
  std::vector<std::string> differing_;
};

}  // namespace convoy::app

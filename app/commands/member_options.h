// Reads `convoy train --members SPEC`. Members are trainings that run together. SPEC is one list or
// a product of lists, or a TOML file with a row for each member:
//
//   seed=1..64                                 64 members
//   "learning-rate=0.01,0.03,0.1 seed=1..3"    9 members, the last key varies fastest
//   members.toml                               [[member]] rows: seed = 1, milestones = [30, 60], …
//
// Lists are separated by spaces or semicolons, and values by commas. a..b is all whole numbers from
// a to b. Keys are the flags of `convoy train` without their dashes. The key `width` gives --model
// another width: width=1,2,4 of wrn16_4 is wrn16_1, wrn16_2 and wrn16_4.
#pragma once

#include <string>
#include <vector>

#include "app/training/train_options.h"

namespace convoy::app {

inline constexpr int kMostMembers = 4096;

// Returns the options of every member: those of `base`, except for the options to which `spec`
// gives another value for this member. Throws UsageError if `spec` is not valid. The message is one
// line that starts with --members or with the name of the TOML file.
std::vector<TrainOptions> member_options(const std::string& spec, const TrainOptions& base);

}  // namespace convoy::app

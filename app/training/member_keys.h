// The options in which members of a run may differ.
#pragma once

#include <string>
#include <vector>

#include "app/training/train_options.h"

namespace convoy::app {

// Throws UsageError if members must not differ in this option, because it is not data that a step
// or a batch reads at run time. The message says why in one line.
void check_member_key(const std::string& key);
// Throws UsageError if a number is 0 for some members but not for all, and 0 leaves out a part of
// the step.
void check_member_structure(const std::vector<TrainOptions>& options);
// Throws UsageError if two members have the same options.
void check_no_member_twice(const std::vector<TrainOptions>& options);

// Returns the options in which some members differ, as flags without their dashes.
std::vector<std::string> keys_that_differ(const std::vector<TrainOptions>& options);

}  // namespace convoy::app

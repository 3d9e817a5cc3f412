// Says in which options the members of a run (trainings that run together, members.h) may differ.
// Members that differ only in values that the step reads while it runs share one compiled step.
// Such members have the same shape.
#pragma once

#include <string>
#include <vector>

#include "app/training/train_options.h"

namespace convoy::app {

// Throws UsageError if members must not differ in the option `key`. The message says why in one
// line.
void check_member_key(const std::string& key);
// Returns the options that decide how the member's step is compiled, as one text. Members have the
// same shape if and only if their texts are equal.
std::string shape_of(const TrainOptions& options);
// Throws UsageError if two members have the same options.
void check_no_member_twice(const std::vector<TrainOptions>& options);

// Returns the options in which some members differ, by their flags without the leading dashes.
std::vector<std::string> keys_that_differ(const std::vector<TrainOptions>& options);

}  // namespace convoy::app

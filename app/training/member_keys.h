// The options in which members of a run may differ.
#pragma once

#include <string>
#include <vector>

#include "app/training/train_options.h"

namespace convoy::app {

// These throw UsageError, one line that says why.
// Members must not differ in an option that is no data of the step or of the batches.
void check_member_key(const std::string& key);
// A number that switches a part of the step off is 0 for all members or for none.
void check_member_structure(const std::vector<TrainOptions>& options);
void check_no_member_twice(const std::vector<TrainOptions>& options);

// Returns the options, by flag, in which some members differ.
std::vector<std::string> keys_that_differ(const std::vector<TrainOptions>& options);

}  // namespace convoy::app

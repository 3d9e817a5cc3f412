// Checks in which options the members of a run differ. All members share one compiled step, so they
// may differ only in values that the step reads while it runs.
#pragma once

#include <string>
#include <vector>

#include "app/training/train_options.h"

namespace convoy::app {

// Throws UsageError if members must not differ in this option. The message says why in one line.
void check_member_key(const std::string& key);
// Throws UsageError if an option is 0 for some members but not for all, and 0 removes operations
// from the step, for example for --ema.
void check_member_structure(const std::vector<TrainOptions>& options);
// Throws UsageError if two members have the same options.
void check_no_member_twice(const std::vector<TrainOptions>& options);

// Returns the options in which some members differ, as flags without their dashes.
std::vector<std::string> keys_that_differ(const std::vector<TrainOptions>& options);

}  // namespace convoy::app

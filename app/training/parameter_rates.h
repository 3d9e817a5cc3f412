// The learning-rate factor of every parameter, as --freeze, --freeze-batch-norm and --rate give it.
#pragma once

#include "app/model/network.h"
#include "app/training/train_options.h"

namespace convoy::app {

// Throws UsageError unless every --rate is PATTERN=FACTOR with a finite factor of at least zero.
void check_rates(const TrainOptions& options);

// Sets ParameterSpec::rate. Patterns are those of a shell (fnmatch): * stands for any text, dots
// too. A parameter takes the factor of the last --rate whose pattern fits, else it is frozen if a
// --freeze fits. --freeze-batch-norm comes before both. Returns how many parameters a --rate trains
// although a --freeze fits. Throws UsageError if a pattern fits no parameter or if nothing is left
// to train.
int set_rates(Network& network, const TrainOptions& options);

}  // namespace convoy::app

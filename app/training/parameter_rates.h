// Sets the learning-rate factor of every parameter, as --freeze, --freeze-batch-norm and --rate
// say.
#pragma once

#include "app/model/network.h"
#include "app/training/train_options.h"

namespace convoy::app {

// Throws UsageError unless every --rate is PATTERN=FACTOR with a finite factor of at least 0.
void check_rates(const TrainOptions& options);

// Sets ParameterSpec::rate of all parameters. Patterns are those of a shell (fnmatch), in which *
// stands for any text, including dots. The first of these rules that fits decides:
//   1. --freeze-batch-norm
//   2. the last --rate whose pattern fits
//   3. any --freeze whose pattern fits
// Returns the number of parameters that a --rate trains although a --freeze names them. Throws
// UsageError if a pattern fits no parameter or if no parameter is trained.
int set_rates(Network& network, const TrainOptions& options);

}  // namespace convoy::app

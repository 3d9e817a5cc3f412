// Adds stochastic depth (Huang et al. 2016) to any network with residual sums.
#pragma once

#include "app/model/network.h"

namespace convoy::app {

// Returns the network with stochastic depth: a sample skips the branch of each residual sum with a
// certain probability, which rises evenly from 0 at the first sum to `rate` at the last, as in
// timm. The branch is the term of the sum that comes after more layers; a sum without such a term
// does not change. Rates that the network has already are replaced, and `rate` 0 removes them.
// Throws UsageError if `rate` is above 0 and there is no such sum.
Network with_drop_path(const Network& network, float rate);

}  // namespace convoy::app

// Adds stochastic depth (Huang et al. 2016) to any network with residual sums.
#pragma once

#include "app/model/network.h"

namespace convoy::app {

// Returns the network with stochastic depth. In each residual sum, a sample skips the residual
// branch with a certain probability, which rises evenly from 0 at the first sum to `rate` at the
// last, as in timm. The residual branch is the term that comes after more layers than the other
// term; a sum of two equally deep terms does not change. Old rates of the network are replaced, and
// `rate` 0 removes them. Throws UsageError if `rate` is above 0 and the network has no residual
// sum.
Network with_drop_path(const Network& network, float rate);

}  // namespace convoy::app

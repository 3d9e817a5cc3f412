// Adds stochastic depth (Huang et al. 2016) to any network with residual sums.
#pragma once

#include "app/model/network.h"

namespace convoy::app {

// Returns the network with stochastic depth: a sample skips the branch of each residual sum with a
// probability that rises evenly from 0 at the first sum to `rate` at the last, as in timm. The
// branch is the term of the sum that comes after more layers; a sum whose terms are equally deep
// does not change. If a branch has stochastic depth already, its rate is replaced. At rate 0 it is
// removed.
Network with_drop_path(const Network& network, float rate);

}  // namespace convoy::app

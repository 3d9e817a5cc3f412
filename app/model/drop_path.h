// Stochastic depth (Huang et al. 2016) for any network with residual sums.
#pragma once

#include "app/model/network.h"

namespace convoy::app {

// Returns an equal network in which a sample skips the branch of each residual sum with a
// probability that rises evenly from 0 at the first sum to `rate` at the last one, as in timm. The
// branch is the term of the sum that comes after more layers; sums of equally deep terms are left
// alone. A stochastic depth that a branch has already gets the new rate, and goes if that is 0.
Network with_drop_path(const Network& network, float rate);

}  // namespace convoy::app

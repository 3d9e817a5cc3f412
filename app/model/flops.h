// Counts the operations of a network.
#pragma once

#include "app/model/network.h"

namespace convoy::app {

// Returns the operations of one forward pass. A multiply-add counts as two.
double forward_flops(const Network& network);

}  // namespace convoy::app

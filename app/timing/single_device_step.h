// How long a training step takes on one device alone, as a session runs it: operations side by side in lanes.
#pragma once

#include "app/execute/session.h"
#include "app/model/network.h"

namespace convoy::app {

// Milliseconds, with the update and without other replicas. Takes the memory of the whole step. The choices of kernels are those
// that are in use already.
double time_single_device_step(const Network& network, SessionOptions options);

}  // namespace convoy::app

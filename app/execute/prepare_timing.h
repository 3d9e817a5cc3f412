#pragma once

#include "app/execute/session.h"

namespace convoy::app {

// Fills a session's memory with the control values of a full batch and with numbers to compute
// with, so that instructions can be timed one by one. Timing spoils parameters and states: call
// SessionTensors::reset() afterwards.
void prepare_timing(Session& session);

}  // namespace convoy::app

// Gives a test the communicator of all ranks that run it.
#pragma once

#include "comm/placement/environment.h"

namespace convoy::test {

comm::MpiEnvironment& environment();
inline const comm::Communicator& world() { return environment().world(); }

}  // namespace convoy::test

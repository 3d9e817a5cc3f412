#pragma once

#include "comm/placement/environment.h"

namespace convoy::test {

comm::MpiEnvironment& environment();
inline const comm::Communicator& world() { return environment().world(); }

}  // namespace convoy::test

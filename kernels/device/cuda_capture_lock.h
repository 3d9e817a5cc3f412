// Keeps calls that wait for the whole device apart from captures of graphs. If any thread of the
// process captures work during such a call, the call fails and the capture becomes invalid. CUDA
// builds only.
#pragma once

#include <shared_mutex>

namespace convoy::kernels {

// Returns the lock. A thread that captures holds it shared; a thread that waits for the device
// holds it alone.
std::shared_mutex& capture_lock();

}  // namespace convoy::kernels

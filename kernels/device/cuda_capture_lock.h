// Prevents calls that wait for the whole device while a graph is captured. If any thread of the
// process captures work during such a call, the call fails and the capture becomes invalid. CUDA
// builds only.
#pragma once

#include <shared_mutex>

namespace convoy::kernels {

// Returns the lock. Lock it shared for a capture, and exclusively for a call that waits for the
// whole device.
std::shared_mutex& capture_lock();

}  // namespace convoy::kernels

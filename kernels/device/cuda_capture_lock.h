// Keeps captures and calls that wait for the whole device apart. Such a call fails, and spoils the
// capture, if any thread of the process captures work at the time. CUDA builds only.
#pragma once

#include <shared_mutex>

namespace convoy::kernels {

// A thread that captures holds the mutex shared, a thread that waits for the device holds it alone.
std::shared_mutex& capture_lock();

}  // namespace convoy::kernels

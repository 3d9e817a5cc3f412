// A loop over independent items on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace convoy::data {

// Calls body(0) … body(count - 1), each once, in any order, on `threads` threads, or on one thread
// per processor if `threads` <= 0. The first exception ends the loop and is thrown here.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body);

}  // namespace convoy::data

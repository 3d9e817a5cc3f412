// A loop over independent items on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace convoy::data {

// Calls body(0) … body(count - 1), each once and in any order. Uses `threads` threads, or one
// thread per processor if `threads` <= 0. The first exception ends the loop and is thrown to the
// caller.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body);

}  // namespace convoy::data

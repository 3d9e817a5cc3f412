// The operations that combine values of the ranks.
#pragma once

#include <cstdint>

namespace convoy::comm {

enum class ReduceOp : std::uint8_t { sum, max, min };

}  // namespace convoy::comm

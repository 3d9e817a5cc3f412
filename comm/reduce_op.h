// Names the ways in which values of the ranks are combined.
#pragma once

#include <cstdint>

namespace convoy::comm {

enum class ReduceOp : std::uint8_t { sum, max, min };

}  // namespace convoy::comm

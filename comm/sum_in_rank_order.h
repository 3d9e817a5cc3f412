// The arithmetic of a sum over ranks: the ranks' values are added in rank order, in blocks that stay in the
// first-level cache. Internal to comm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/device/tensor.h"

namespace convoy::comm {

// parts[r] is rank r's contribution of `count` elements; the sum goes to `result`, which may be one of them.
// bf16 is accumulated in float and rounded once, to nearest even. Throws std::invalid_argument for other
// types than f32, f64, bf16.
void sum_in_rank_order(const std::vector<const void*>& parts, std::int64_t count, kernels::DType type,
                       void* result);

}  // namespace convoy::comm

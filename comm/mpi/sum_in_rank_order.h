// The arithmetic of a sum over ranks: the ranks' values are added in rank order, in blocks that stay in the
// first-level cache. Internal to comm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/device/tensor.h"

namespace convoy::comm {

// Throws std::invalid_argument, beginning with `name`, for other types than f32, f64, bf16.
void require_summable(kernels::DType type, std::string_view name);

// parts[r] is rank r's contribution of `count` elements; the sum goes to all of `results`, which may be among them.
// bf16 is accumulated in float and rounded once, to nearest even.
void sum_in_rank_order(const std::vector<const void*>& parts, std::int64_t count, kernels::DType type,
                       const std::vector<void*>& results);

}  // namespace convoy::comm

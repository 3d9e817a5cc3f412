// Adds the values of all ranks in rank order, in blocks that fit into the first-level cache.
// Internal to comm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/device/tensor.h"

namespace convoy::comm {

// Throws std::invalid_argument, starting with `name`, unless the type is f32, f64 or bf16.
void require_summable(kernels::DType type, std::string_view name);

// Adds the arrays parts[r], which have `count` elements each, in the order of r. Writes the sum to
// each of `results`, which may be among the parts. bf16 is accumulated in float and rounded once,
// to nearest even.
void sum_in_rank_order(const std::vector<const void*>& parts, std::int64_t count, kernels::DType type,
                       const std::vector<void*>& results);

}  // namespace convoy::comm

#include "app/execute/fill_with_numbers.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/device/device_memory.h"
#include "kernels/device/philox.h"

namespace convoy::app {

void fill_with_numbers(kernels::Backend backend, std::byte* data, std::int64_t bytes) {
  std::vector<std::uint32_t> pattern(4096);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const float value = kernels::uniform(kernels::philox(7, i).word[0]) - 0.5f;
    const std::uint32_t half = std::bit_cast<std::uint32_t>(value) >> 16;
    pattern[i] = half << 16 | half;
  }
  const std::size_t size = static_cast<std::size_t>(bytes), block = std::min(size, pattern.size() * 4);
  kernels::copy_in(backend, data, pattern.data(), block);
  kernels::repeat(backend, data, block, size);
}

}  // namespace convoy::app

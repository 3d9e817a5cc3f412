#include "comm/mpi/sum_in_rank_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>

namespace convoy::comm {
namespace {

constexpr std::int64_t kBlock = 1024;

float widen(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
float widen(float value) { return value; }
double widen(double value) { return value; }

void narrow(float value, float& to) { to = value; }
void narrow(double value, double& to) { to = value; }
void narrow(float value, std::uint16_t& to) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  to = static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

template <typename Stored, typename Wide>
void sum(const std::vector<const void*>& parts, std::int64_t count, const std::vector<void*>& results) {
  alignas(64) std::array<Wide, kBlock> total;
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t length = std::min(kBlock, count - first);
    const auto part = [&](std::size_t rank) { return static_cast<const Stored*>(parts[rank]) + first; };
    const Stored* values = part(0);
    for (std::int64_t i = 0; i < length; ++i) total[i] = widen(values[i]);
    for (std::size_t rank = 1; rank < parts.size(); ++rank) {
      values = part(rank);
      for (std::int64_t i = 0; i < length; ++i) total[i] += widen(values[i]);
    }
    for (void* result : results) {
      Stored* to = static_cast<Stored*>(result) + first;
      for (std::int64_t i = 0; i < length; ++i) narrow(total[i], to[i]);
    }
  }
}

}  // namespace

void require_summable(kernels::DType type, std::string_view name) {
  if (type != kernels::DType::f32 && type != kernels::DType::f64 && type != kernels::DType::bf16)
    throw std::invalid_argument(fmt::format("{}: only f32, f64 and bf16 are summed over the ranks", name));
}

void sum_in_rank_order(const std::vector<const void*>& parts, std::int64_t count, kernels::DType type,
                       const std::vector<void*>& results) {
  if (type == kernels::DType::f32) sum<float, float>(parts, count, results);
  if (type == kernels::DType::f64) sum<double, double>(parts, count, results);
  if (type == kernels::DType::bf16) sum<std::uint16_t, float>(parts, count, results);
}

}  // namespace convoy::comm

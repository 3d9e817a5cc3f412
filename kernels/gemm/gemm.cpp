// Names, checks and sizes of matrix products (gemm.h). Needs no GPU.
#include "kernels/gemm/gemm.h"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>

namespace convoy::kernels::gemm {

const char* name_of(Math math) {
  switch (math) {
    case Math::fp32:
      return "fp32";
    case Math::tf32:
      return "tf32";
    case Math::bf16:
      return "bf16";
  }
  return "unknown";
}

const char* name_of(Rung rung) {
  switch (rung) {
    case Rung::elementwise:
      return "elementwise";
    case Rung::shared_tiles:
      return "shared_tiles";
    case Rung::register_tiles:
      return "register_tiles";
    case Rung::mma_sync:
      return "mma_sync";
    case Rung::wgmma:
      return "wgmma";
    case Rung::cublas:
      return "cublas";
  }
  return "unknown";
}

Problem Problem::checked() const {
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max() - 1024;
  Problem filled = *this;
  for (const auto extent : {m, n, k})
    if (extent < 1 || extent > kLimit)
      throw std::invalid_argument(
          fmt::format("gemm: m, n, k are {}, {}, {}: expected each in 1..{}", m, n, k, kLimit));
  if (output != DType::f32 && output != DType::bf16)
    throw std::invalid_argument("gemm: the output's type is neither f32 nor bf16");
  const auto fill = [](const char* name, std::int64_t& pitch, std::int64_t width) {
    if (pitch == 0) pitch = width;
    if (pitch < width)
      throw std::invalid_argument(
          fmt::format("gemm: {} is {}, less than a row's {} elements", name, pitch, width));
  };
  fill("lda", filled.lda, transpose_a ? m : k);
  fill("ldb", filled.ldb, transpose_b ? k : n);
  fill("ldc", filled.ldc, n);
  return filled;
}

double Problem::bytes() const {
  const double read_c = beta != 0 ? 2 : 1;
  return (double(m) * double(k) + double(k) * double(n)) * double(element_bytes()) +
         read_c * double(m) * double(n) * double(bytes_of(output));
}

std::string Problem::to_string() const {
  return fmt::format("{} {}{} {}x{}x{} -> {}", name_of(math), transpose_a ? 'T' : 'N',
                     transpose_b ? 'T' : 'N', m, n, k, output == DType::bf16 ? "bf16" : "f32");
}

}  // namespace convoy::kernels::gemm

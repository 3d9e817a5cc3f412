// Matrix products on the GPU: C = alpha op(A) op(B) + beta C, then bias and ReLU. There are several
// families of kernels, called rungs (as of a ladder). The simplest computes one element per thread;
// the fastest uses Hopper's warpgroup matrix instructions. cuBLAS is one more rung.
//
// Matrices are row-major. op(A) is [m, k]: A is stored [m, k], or [k, m] with transpose_a. op(B) is
// [k, n]: B is stored [k, n], or [n, k] with transpose_b. lda, ldb and ldc count elements from one
// stored row to the next. Sums are fp32, in a fixed order: the same plan gives the same bits in
// every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::kernels::gemm {

// The type of A and B, and how they are multiplied. tf32 reads f32 and uses the upper 19 bits.
enum class Math : std::uint8_t { fp32, tf32, bf16 };

enum class Rung : std::uint8_t {
  elementwise,   // one thread per element of C
  shared_tiles,  // 32 x 32 tiles through shared memory
  // For fp32. A thread computes 8 x 8 or 8 x 16 elements of C. Loads are vectors, and copies
  // overlap arithmetic.
  register_tiles,
  mma_sync,  // tensor cores with mma.sync, on any chip from sm_80 on
  wgmma,     // Hopper's wgmma with operands loaded by TMA; warp-specialised, persistent
  cublas,    // NVIDIA's library, for comparison
};
inline constexpr Rung kRungs[] = {Rung::elementwise, Rung::shared_tiles, Rung::register_tiles,
                                  Rung::mma_sync,    Rung::wgmma,        Rung::cublas};

const char* name_of(Math math);
const char* name_of(Rung rung);

struct Problem {
  Math math = Math::fp32;
  DType output = DType::f32;  // f32 or bf16
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;  // 0 stands for rows without gaps
  float alpha = 1;
  float beta = 0;            // if beta is 0, C is not read
  bool bias = false;         // adds bias[column]
  bool relu = false;         // applies after the bias is added
  bool column_sums = false;  // also writes the column sums of the stored C and of its squares

  // Returns the problem with pitches of 0 replaced. Throws std::invalid_argument if no kernel
  // supports the problem.
  Problem checked() const;
  std::size_t element_bytes() const { return math == Math::bf16 ? 2 : 4; }
  double operations() const { return 2.0 * double(m) * double(n) * double(k); }
  // Returns the bytes to read and write if each operand is moved once.
  double bytes() const;
  std::string to_string() const;  // for example "bf16 NT 8192x8192x8192 -> bf16"
};

// Says how a rung runs a problem: with which tile shape, and into how many splits k is divided
// (split-k). With several splits, the kernel writes partial sums for each split, and another kernel
// adds them up in order.
struct Plan {
  Rung rung = Rung::elementwise;
  int tile = 0;  // an index into the rung's tile shapes
  int splits = 1;
  std::size_t workspace_bytes = 0;
  std::string to_string() const;  // for example "wgmma 128x256 split 4"
};

struct Buffers {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const float* bias = nullptr;    // [n]
  double* column_sums = nullptr;  // [2, n]: the sums, then the sums of squares
  void* workspace = nullptr;      // aligned to 256 bytes
  MemberLayout members = {};      // more than one only if takes_members(plan)
};

// Returns whether the rung supports the problem on the current device.
bool supports(Rung rung, const Problem& problem);
// Returns the plan that is expected to be the fastest of this rung. The call is cheap and
// deterministic.
Plan plan(Rung rung, const Problem& problem);
// Returns the plan of our own rungs that is expected to be the fastest.
Plan plan(const Problem& problem);
// Returns all plans that are worth timing. The plan that is expected to be the fastest comes first.
std::vector<Plan> candidates(Rung rung, const Problem& problem);
// Returns the tuning file's plan for the problem. If the file has none and measuring is allowed
// (kernels/device/tuning.h), returns the fastest plan of all rungs, cuBLAS included. Otherwise
// returns plan(problem). Do not call this inside a capture.
Plan chosen(const Problem& problem);
// Returns whether one launch of the plan can compute all members (kernels/device/kernel.h).
constexpr bool takes_members(const Plan& plan) { return plan.rung != Rung::cublas; }
// Binds a plan to its buffers. A launch only enqueues work on its stream and allocates nothing, so
// it can be captured.
Launch bind(const Problem& problem, const Plan& plan, const Buffers& buffers);

}  // namespace convoy::kernels::gemm

// The interface between cuda/makers.cpp, which selects a kernel family (rung), and the families.
// Also has code that several families need. CUDA builds only.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "kernels/gemm/gemm.h"

namespace convoy::kernels::gemm {

struct Epilogue;

// The functions of a kernel family.
struct RungEntry {
  bool (*supports)(const Problem&);
  // The plan that is expected to be fastest comes first.
  std::vector<Plan> (*candidates)(const Problem&);
  Launch (*bind)(const Problem&, const Plan&, const Buffers&);
  std::vector<const char*> tiles;
};
const RungEntry& elementwise_rung();
const RungEntry& shared_tiles_rung();
const RungEntry& register_tiles_rung();
const RungEntry& mma_sync_rung();
const RungEntry& wgmma_rung();
const RungEntry& cublas_rung();

struct DeviceFacts {
  int major = 0, minor = 0, multiprocessors = 0;
};
const DeviceFacts& device_facts();  // the current device's facts; throws if there is no device

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
inline std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

Epilogue epilogue_of(const Problem& problem, const Buffers& buffers);

// Hands out ranges of a workspace, each aligned to 256 bytes. If `base` is null, only counts the
// bytes.
class Carver {
 public:
  explicit Carver(void* base) : base_(static_cast<std::uint8_t*>(base)) {}
  template <typename T>
  T* take(std::size_t count) {
    const std::size_t offset = used_;
    used_ += round_up(count * sizeof(T), 256);
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + offset);
  }
  std::size_t used() const { return used_; }

 private:
  std::uint8_t* base_;
  std::size_t used_ = 0;
};

// Returns the row pitch of the partial sums, [splits][m][pitch]. It is a multiple of 4 elements.
inline std::int64_t partial_pitch(const Problem& problem) { return ceil_div(problem.n, 4) * 4; }
inline std::size_t partial_elements(const Problem& problem, int splits) {
  return std::size_t(splits) * std::size_t(problem.m) * std::size_t(partial_pitch(problem));
}
// Adds up the partial sums of the splits of k, in order, and applies the epilogue.
void sum_partials(const Epilogue& epilogue, const float* partial, int splits, std::int64_t m, std::int64_t n,
                  std::int64_t pitch, cudaStream_t stream, MemberLayout members);

// Compute column sums of C and of its squares. First, sum_columns() or the kernel that writes C
// fills up to kSumSlots slots of partial sums, [2][n], in float or double. Then sum_slots() adds up
// the slots in double precision. If a row of C is `joined` rows of n elements, a slot is [2][n *
// joined].
inline constexpr int kSumSlots = 264;
std::size_t slot_elements(std::int64_t n, int slots);
void sum_columns(const Epilogue& epilogue, std::int64_t m, std::int64_t n, float* slots, cudaStream_t stream,
                 MemberLayout members);
template <typename Slot>
void sum_slots(const Slot* slots, int count, std::int64_t n, double* sums, cudaStream_t stream,
               MemberLayout members, int joined = 1);

// Copies a matrix of 2- or 4-byte elements to a matrix of another pitch. out[r][c] is in[r][c] or,
// with `transpose`, in[c][r].
void repack(const void* in, std::int64_t in_pitch, bool transpose, void* out, std::int64_t out_pitch,
            std::int64_t out_rows, std::int64_t out_columns, std::size_t element_bytes, cudaStream_t stream,
            MemberLayout members);

}  // namespace convoy::kernels::gemm

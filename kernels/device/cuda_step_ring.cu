// The two kernels of a StepRing: one fetches a step's values from host memory, the other publishes
// the step's results to host memory. The bus limits the rate of both, so they have few threads.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/cuda_step_ring.h"
#include "kernels/device/device_memory.h"

namespace convoy::kernels {
namespace {

constexpr int kRingThreads = 512;
// The number of loads over the bus that a thread starts before it uses their results.
constexpr int kInFlight = 8;

struct Piece {
  std::uint64_t* device;
  // offset: the byte of the slot at which the field begins. words: how many 8-byte words the field
  // has for one member (MemberLayout, kernel.h).
  std::size_t offset, words;
};
struct Pieces {
  Piece piece[StepRing::kMostFields];
  int count;
  std::size_t members, stride;  // stride: words from one member's memory to the next member's
};

__global__ void __launch_bounds__(kRingThreads)
    fetch_slot(const std::byte* ring, std::size_t slot_bytes, int slots, const unsigned long long* number,
               const __grid_constant__ Pieces pieces) {
  const std::byte* slot = ring + *number % static_cast<unsigned>(slots) * slot_bytes;
  for (int i = 0; i < pieces.count; ++i) {
    const std::size_t words = pieces.piece[i].words, member = blockIdx.x;
    // The host has written the slot since the last step, so the loads must not come from a cache.
    const auto* from =
        reinterpret_cast<const volatile std::uint64_t*>(slot + pieces.piece[i].offset) + member * words;
    std::uint64_t* to = pieces.piece[i].device + member * pieces.stride;
    for (std::size_t first = threadIdx.x; first < words; first += kRingThreads * kInFlight) {
      std::uint64_t values[kInFlight];
#pragma unroll
      for (int k = 0; k < kInFlight; ++k)
        if (first + k * kRingThreads < words) values[k] = from[first + k * kRingThreads];
#pragma unroll
      for (int k = 0; k < kInFlight; ++k)
        if (first + k * kRingThreads < words) to[first + k * kRingThreads] = values[k];
    }
  }
}

// The number of threads that publish a short slot (at most kFewWords words), such as metrics.
constexpr int kFewThreads = 32;
constexpr std::size_t kFewWords = 1024;  // the most words of a short slot

__global__ void __launch_bounds__(kRingThreads)
    publish_slot(std::byte* ring, std::size_t slot_bytes, int slots, unsigned long long* number,
                 const __grid_constant__ Pieces pieces, std::size_t mark) {
  std::byte* slot = ring + *number % static_cast<unsigned>(slots) * slot_bytes;
  for (int i = 0; i < pieces.count; ++i) {
    auto* to = reinterpret_cast<volatile std::uint64_t*>(slot + pieces.piece[i].offset);
    const std::size_t words = pieces.piece[i].words, all = words * pieces.members;
    const auto from = [&](std::size_t word) {
      const std::size_t member = pieces.members == 1 ? 0 : word / words;
      return pieces.piece[i].device[member * pieces.stride + word - member * words];
    };
    for (std::size_t first = threadIdx.x; first < all; first += blockDim.x * kInFlight) {
      std::uint64_t values[kInFlight];
#pragma unroll
      for (int k = 0; k < kInFlight; ++k)
        if (first + k * blockDim.x < all) values[k] = from(first + k * blockDim.x);
#pragma unroll
      for (int k = 0; k < kInFlight; ++k)
        if (first + k * blockDim.x < all) to[first + k * blockDim.x] = values[k];
    }
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x != 0) return;
  *reinterpret_cast<volatile std::uint64_t*>(slot + mark) = ++*number;
  __threadfence_system();
}

Pieces pieces_of(const std::vector<StepRing::Field>& fields, const std::vector<std::size_t>& offsets,
                 const MemberLayout& members) {
  Pieces pieces{};
  pieces.members = static_cast<std::size_t>(members.count);
  pieces.stride = static_cast<std::size_t>(members.stride) / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < fields.size(); ++i)
    pieces.piece[pieces.count++] = {static_cast<std::uint64_t*>(fields[i].device), offsets[i],
                                    fields[i].bytes / sizeof(std::uint64_t)};
  return pieces;
}

}  // namespace

StepRing::StepRing(int slots, std::vector<Field> fetched, std::vector<Field> published, MemberLayout members)
    : slots_(slots), members_(members), fetched_(std::move(fetched)), published_(std::move(published)) {
  if (slots < 1 || std::ssize(fetched_) > kMostFields || std::ssize(published_) > kMostFields)
    throw std::logic_error("a step ring has a slot or more and at most five fields each way");
  const auto place = [&](const std::vector<Field>& fields, std::vector<std::size_t>& offsets) {
    for (const Field& field : fields) {
      if (field.bytes % 8 != 0) throw std::logic_error("a field of a step ring is no multiple of 8 bytes");
      offsets.push_back(slot_bytes_);
      slot_bytes_ += field.bytes * static_cast<std::size_t>(members_.count);
    }
  };
  place(fetched_, fetched_at_);
  place(published_, published_at_);
  mark_at_ = slot_bytes_;
  slot_bytes_ = (mark_at_ + sizeof(std::uint64_t) + 127) / 128 * 128;
  pinned_ = PinnedBuffer(slot_bytes_ * static_cast<std::size_t>(slots));
  std::memset(pinned_.data(), 0, pinned_.bytes());
  number_ = DeviceBuffer(sizeof(std::uint64_t));
  CONVOY_CUDA(cudaMemset(number_.data(), 0, number_.bytes()));
  synchronize(Backend::cuda);
}

void StepRing::fetch(Stream stream) const {
  cuda::launch(fetch_slot, static_cast<unsigned>(members_.count), kRingThreads, stream, pinned_.data(),
               slot_bytes_, slots_, reinterpret_cast<const unsigned long long*>(number_.data()),
               pieces_of(fetched_, fetched_at_, members_));
}

void StepRing::publish(Stream stream) const {
  const int threads = mark_at_ - published_at_.front() > kFewWords * 8 ? kRingThreads : kFewThreads;
  cuda::launch(publish_slot, 1, threads, stream, pinned_.data(), slot_bytes_, slots_,
               reinterpret_cast<unsigned long long*>(number_.data()),
               pieces_of(published_, published_at_, members_), mark_at_);
}

std::byte* StepRing::input(std::int64_t number, int field, int member) const {
  const auto at = static_cast<std::size_t>(field);
  return slot(number) + fetched_at_[at] + static_cast<std::size_t>(member) * fetched_[at].bytes;
}

bool StepRing::finished(std::int64_t number) const {
  auto* mark = reinterpret_cast<std::uint64_t*>(slot(number) + mark_at_);
  return std::atomic_ref(*mark).load(std::memory_order_acquire) > static_cast<std::uint64_t>(number);
}

const std::byte* StepRing::output(std::int64_t number, int field, int member) const {
  const auto at = static_cast<std::size_t>(field);
  return slot(number) + published_at_[at] + static_cast<std::size_t>(member) * published_[at].bytes;
}

}  // namespace convoy::kernels

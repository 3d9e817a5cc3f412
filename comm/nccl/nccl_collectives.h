// Collectives on device memory over NCCL, with one rank per GPU. If the GPUs of one host address
// each other's memory, copy engines (the DMA units of a GPU) sum large gradient buckets and move
// data between buffers of transfer_memory().
//
// Streams. Every operation runs on a stream of this object. It begins after the work on the
// caller's stream, and work that the caller enqueues after wait() sees its result. There is a
// stream for gradient buckets, one for other collectives, and one for each ordered pair of ranks,
// so that a small all-reduce does not queue after a bucket.
//
// Capture. CUDA graphs can capture all operations; capture start() and wait() of an operation in
// the same graph. The first start of a transfer connects ranks, so run a step once before
// capturing it. Destroy the graphs before this object.
//
// Bits. Results are the same in every run with the same ranks, hosts, NCCL and count. NCCL chooses
// the order of its additions by the count and by the element's place in the buffer, so other counts
// or places may change bits. They do not if there are only two ranks or if copy engines do the sum.
// NVLink SHARP, which adds in an order of its own, is off unless NCCL_NVLS_ENABLE or NCCL_ALGO is
// set.
//
// NCCL_P2P_DISABLE=1 turns the copy engines off. They are also off if CUDA_VISIBLE_DEVICES or a
// container hides the other ranks' GPUs or processes.
//
// Failures. A rank that dies, stalls or meets an error of NCCL ends the job, as with collectives on
// host memory. An exception that unwinds past an operation or its collectives ends all connections
// of the process.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/collectives.h"

namespace convoy::comm {

// The bucket sizes: 32 MiB, and 1 MiB for the first and the last bucket. On two H200 over NVLink,
// the all-reduce of 100 MiB takes 541 us in buckets of 16 MiB, 470 us in buckets of 32 MiB and 410
// us in buckets of 64 MiB. The all-reduce of the last bucket, which no computation hides, takes 36
// us for 4 MiB and 17 us for 1 MiB.
inline constexpr BucketSizes kNcclBucketSizes{std::int64_t{32} << 20, std::int64_t{1} << 20};

// Copy engines do a prepared all-reduce of f32 in shared_memory() if it has at least this many
// bytes, and NCCL does smaller ones. With nothing else running, copy engines take 1.2 to 1.5 times
// as long as NCCL. But they delay a computation that runs at the same time by only 15 to 20 % of
// the all-reduce's duration, and NCCL delays it by 60 %.
inline constexpr std::int64_t kLeastCopiedBytes = std::int64_t{16} << 20;

// Says what a Collectives object sums. `small` means statistics, metrics and norms, but no
// gradients. Then one NCCL communicator with few channels is enough, which saves hundreds of MiB of
// NCCL's buffers.
enum class Sums : std::uint8_t { gradients, small };

// Makes collectives over NCCL. Collective over all members. Each member must have made its own
// device current. Throws the same std::runtime_error on every rank if two ranks share a GPU. Throws
// std::runtime_error with NCCL's reason if it cannot connect, and in builds without CUDA. A single
// rank needs no NCCL.
std::unique_ptr<Collectives> make_nccl_collectives(const Communicator& communicator,
                                                   Sums sums = Sums::gradients);

}  // namespace convoy::comm

// Collectives on device memory over NCCL, with one rank per GPU. If the GPUs of one host address
// each other's memory, copy engines (the DMA ones) do large gradient buckets and transfers between
// transfer_memory().
//
// Every operation runs on a communication stream of this object: it begins after the work on the
// caller's stream, and work that the caller enqueues after wait() sees its result. Gradient buckets
// (prepared sums of f32 and bf16), other collectives (statistics and metrics, f64) and each ordered
// pair of ranks have a stream of their own, so that a small all-reduce does not queue after a
// bucket.
//
// All of it can be captured into a CUDA graph; start() and wait() of an operation belong into the
// same capture. Starts of transfers outside captures connect ranks (collectives.h), so run a step
// once before capturing it. Destroy graphs before this object.
//
// Bits. Results are the same in every run with the same ranks, hosts, NCCL and count. Unlike on the
// host, they may depend on an element's place in the buffer and on the count, because NCCL chooses
// the algorithm by them; with two ranks, and with copy engines, they depend on the values only.
// NVLink SHARP, which adds in an order of its own, is off unless NCCL_NVLS_ENABLE or NCCL_ALGO is
// set.
//
// NCCL_P2P_DISABLE=1 turns the copy engines off. So does a CUDA_VISIBLE_DEVICES, or a container,
// that hides the other ranks' GPUs or processes.
//
// The watchdog follows the device by counters that a second stream advances before and after each
// operation. A rank that dies, stalls or meets an error of NCCL ends the job as on the host. An
// exception that unwinds past an operation or its collectives ends all connections of the process.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/collectives.h"

namespace convoy::comm {

// Measured on two H200 over NVLink: 100 MiB take 541 us in buckets of 16 MiB, 470 us of 32 and 410
// us of 64. The last bucket, which nothing hides, takes 36 us at 4 MiB and 17 us at 1 MiB.
inline constexpr BucketSizes kNcclBucketSizes{std::int64_t{32} << 20, std::int64_t{1} << 20};

// Copy engines do prepared sums of f32 in shared_memory() from this size on. Alone they take 1.2 to
// 1.5 times as long as NCCL. But a computation that runs at the same time loses only 15 to 20 % of
// the sum's time, and 60 % of it with NCCL.
inline constexpr std::int64_t kLeastCopiedBytes = std::int64_t{16} << 20;

// With `small`, all sums are of statistics, metrics or norms. They use a single communicator of few
// channels, which saves the hundreds of MiB that NCCL takes for connections that move gradients.
enum class Sums : std::uint8_t { gradients, small };

// Makes collectives over NCCL. Collective over all members, each with its own device current.
// Throws the same std::runtime_error on every rank if two share a GPU.
// Throws std::runtime_error with NCCL's reason if it cannot connect, and in builds without CUDA. A
// single rank needs no NCCL.
std::unique_ptr<Collectives> make_nccl_collectives(const Communicator& communicator,
                                                   Sums sums = Sums::gradients);

}  // namespace convoy::comm

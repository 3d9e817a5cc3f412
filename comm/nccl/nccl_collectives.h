// Collectives on device memory over NCCL, one rank a GPU; large gradient buckets, and transfers between transfer_memory(), over
// the copy engines where one host's GPUs address each other's memory.
//
// Every operation runs on a communication stream of this object: it begins after what is on the caller's stream
// and what the caller puts behind wait() sees its result. Gradient buckets (prepared sums of f32 and bf16), the
// other collectives (statistics and metrics are f64) and each ordered pair of ranks have a stream of their own, and an NCCL
// communicator where they need one, so a small all-reduce on the critical path does not queue behind a bucket and a
// receive does not hold up a send.
//
// All of it can be captured into a CUDA graph; start() and wait() of an operation belong into the same capture.
// Starts of transfers outside captures connect ranks (collectives.h): run a step once before capturing it.
// Destroy graphs before the object whose operations they hold.
//
// Sums. A buffer's result has the same bits in every run with the same ranks, hosts, NCCL and count. Unlike on
// the host, an element's bits may depend on its place in the buffer and on the count, because NCCL chooses
// algorithm and order by them; among two ranks, and in what the copy engines move, they depend on nothing but the ranks'
// values. NVLink SHARP, whose order of adding is the switch's, is turned off unless NCCL_NVLS_ENABLE or NCCL_ALGO in the
// environment says otherwise.
// NCCL_P2P_DISABLE=1 leaves all sums and transfers to NCCL; so do a CUDA_VISIBLE_DEVICES that hides the other ranks' GPUs from a
// rank, and containers that hide its processes.
//
// The watchdog (comm/watchdog) sees what the device does by counters that a stream beside advances before and
// behind each operation: a rank that dies, stalls or meets an error of NCCL ends the job like on the host. An exception that unwinds
// past an operation or its collectives ends all connections of the process.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/collectives.h"

namespace convoy::comm {

// Of gradient buckets. 100 MiB between two H200 over NVLink: 541 us in buckets of 16 MiB, 470 of 32, 410 of 64; the last
// one, which nothing hides, takes 36 us at 4 MiB and 17 us at 1 MiB.
inline constexpr BucketSizes kNcclBucketSizes{std::int64_t{32} << 20, std::int64_t{1} << 20};

// From so many on, prepared sums of f32 in shared_memory() are the copy engines'. Alone they take 1.2 (2 H200) to 1.5
// times (4) as long as NCCL for 32 MiB, but computation beside them loses 15 to 20 % of that time and not 60 %; small
// ones wait too long for each other.
inline constexpr std::int64_t kLeastCopiedBytes = std::int64_t{16} << 20;

// What ranks sum: gradients, too, or little: statistics, metrics and norms. NCCL takes hundreds of MiB of a device for
// connections that move gradients; without them everything shares a communicator of few channels.
enum class Sums : std::uint8_t { gradients, small };

// Collective over all members, each with its own device current; throws the same std::runtime_error on every rank
// when two of them share a GPU, and std::runtime_error with NCCL's reason when it cannot connect, or in a build
// without CUDA. A single rank needs no NCCL and launches nothing.
std::unique_ptr<Collectives> make_nccl_collectives(const Communicator& communicator,
                                                   Sums sums = Sums::gradients);

}  // namespace convoy::comm

// Times Convoy's collectives and the corresponding library calls, such as MPI_Allreduce on host
// memory and ncclAllReduce on device memory. `convoy bench collectives` uses this.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/collectives.h"

namespace convoy::comm {

// `gradients` is the all-reduce of a step's gradients, in memory that the ranks share if possible.
// In `send_receive` each rank sends to the next rank and receives from the previous one.
enum class Movement : std::uint8_t { all_reduce, gradients, broadcast, send_receive };
const char* name_of(Movement movement);

// Returns the number of bytes that cross a rank's link for each byte of the buffer. With n ranks it
// is 2 (n - 1) / n for the all-reduce of a ring, and 1 for other movements (nccl-tests,
// doc/PERFORMANCE.md). The rate of bytes over the link can be compared between different numbers of
// ranks.
double bus_factor(Movement movement, int ranks);

class CollectivesMeter {
 public:
  virtual ~CollectivesMeter() = default;
  virtual Collectives& collectives() = 0;
  virtual std::string library() const = 0;  // for example "NCCL 2.28.9"

  // Makes the memory and connections that the ranks share. Collective: call it once on all ranks,
  // before any other call. All ranks must have made their meters successfully, because a rank
  // without one could not take part.
  virtual void connect() = 0;

  // Whose code moves the data, which are f32: Convoy's own or the library's.
  enum class Way : std::uint8_t { own, library };
  // Fills the buffer, runs `movement` once and checks every element. Returns whether the results of
  // all ranks were right.
  virtual bool correct(Movement movement, std::int64_t bytes, Way way) = 0;
  // Runs `movement` `times` times in a row. Returns the mean time of one run on the slowest rank,
  // in microseconds. Overwrites the buffer. On devices the calls are captured in one CUDA graph, as
  // in a training step.
  virtual double microseconds(Movement movement, std::int64_t bytes, Way way, int times) = 0;
  // Returns the microseconds of one all-reduce of `bytes` of gradients that are divided into
  // buckets of `bucket` bytes.
  virtual double bucketed_microseconds(std::int64_t bytes, std::int64_t bucket, int times) = 0;

  // Three times in microseconds: of an all-reduce of gradients alone, of a computation alone, and
  // of both if they run at the same time.
  struct OverlapTimes {
    double communication = 0, computation = 0, together = 0;
  };
  virtual OverlapTimes side_by_side(std::int64_t bytes, const std::function<void(Stream)>& computation,
                                    int times) = 0;
};

// Makes a meter for collectives on host memory. Collective. `most_bytes`, a multiple of 4, is the
// largest size that the meter's functions accept.
std::unique_ptr<CollectivesMeter> make_mpi_meter(const Communicator& ranks, std::int64_t most_bytes);
// Makes a meter for collectives on device memory. Throws the errors of make_nccl_collectives().
std::unique_ptr<CollectivesMeter> make_nccl_meter(const Communicator& ranks, std::int64_t most_bytes);

}  // namespace convoy::comm

// Times collectives beside the library calls that they are built on: MPI_Allreduce and its like on host memory,
// ncclAllReduce and its like on device memory. For `convoy bench collectives`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/collectives.h"

namespace convoy::comm {

// gradients: an all-reduce where the ranks share memory, if they do, as a step's buckets have it.
enum class Movement : std::uint8_t { all_reduce, gradients, broadcast, send_receive };
const char* name_of(Movement movement);

// Bytes that cross a rank's link, over the buffer's bytes: the ring's 2 (n - 1) / n of an all-reduce, 1 of the others
// (nccl-tests' doc/PERFORMANCE.md), so that bandwidths compare between rank counts.
double bus_factor(Movement movement, int ranks);

class CollectivesMeter {
 public:
  virtual ~CollectivesMeter() = default;
  virtual Collectives& collectives() = 0;
  virtual std::string library() const = 0;  // "NCCL 2.28.9"

  // Once, before any time is taken: what the ranks have together. Collective, and to be called when every rank has its meter, as
  // making one reserves a rank's own memory, of which one alone may have too little.
  virtual void connect() = 0;

  // The ways to do a movement of f32; send_receive sends to the next rank and receives from the one before.
  enum class Way : std::uint8_t { own, library };
  // Fills the buffer, does it once and looks at every element. Whether all ranks found what they should.
  virtual bool correct(Movement movement, std::int64_t bytes, Way way) = 0;
  // Does it `times` times, back to back as a training step would; the mean of one in microseconds. The buffer's
  // content is of no interest afterwards. On devices the calls are captured in one CUDA graph, as a step's are.
  virtual double microseconds(Movement movement, std::int64_t bytes, Way way, int times) = 0;
  // One all-reduce of gradients of `bytes` in buckets of `bucket` bytes by prepared operations; microseconds of one.
  virtual double bucketed_microseconds(std::int64_t bytes, std::int64_t bucket, int times) = 0;

  // An all-reduce of gradients and a computation, each alone and both side by side, started in this order;
  // microseconds of one.
  struct SideBySide {
    double communication = 0, computation = 0, together = 0;
  };
  virtual SideBySide side_by_side(std::int64_t bytes, const std::function<void(Stream)>& computation,
                                  int times) = 0;
};

// Collective. `most_bytes` bounds the messages. Messages have to be multiples of 4 bytes.
std::unique_ptr<CollectivesMeter> make_mpi_meter(const Communicator& ranks, std::int64_t most_bytes);
// With the device current; throws as make_nccl_collectives.
std::unique_ptr<CollectivesMeter> make_nccl_meter(const Communicator& ranks, std::int64_t most_bytes);

}  // namespace convoy::comm

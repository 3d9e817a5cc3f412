// Collectives on tensor data, the same calls on every backend: MPI on host memory, NCCL on device memory.
//
// Everything is ordered on a stream, as NCCL orders it: a call uses its buffers after what was put on the
// stream before it and before what is put there afterwards. Host backends ignore the stream and have done
// their work when the call returns. All ranks make the same calls in the same order. The k-th send from rank
// a to rank b meets the k-th receive on b from a; there are no tags.
//
// `label` names the data in messages ("gradients bucket 3", "activation conv2").
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "comm/bucket_plan.h"
#include "comm/reduce_op.h"
#include "kernels/device/kernel.h"
#include "kernels/device/tensor.h"

namespace convoy::comm {

using kernels::DType;
using kernels::Stream;

// An operation on fixed buffers that runs every step. It is prepared once, on all the ranks that take part;
// starting and finishing it allocates nothing. On devices a start outside captures may wait: over NCCL it connects all pairs of ranks
// for which transfers were prepared since the last one, until each peer does the same by a start of its own; by copy engines
// the first start of a send waits until its receive is prepared.
class PreparedOperation {
 public:
  virtual ~PreparedOperation() = default;
  // Begins after what is on `stream`; the buffer belongs to the operation until wait.
  virtual void start(Stream stream) = 0;
  // Moves a started operation on; true when there is nothing left to do. Cheap: between two kernels of a rank
  // whose only thread computes, calls to it are what makes the data move. Always true on devices.
  virtual bool progress() = 0;
  // What is put on `stream` afterwards comes behind the operation, which must still be waited for. Nothing on the host.
  virtual void follow(Stream) {}
  // What is put on `stream` afterwards sees the result. Returns at once when it was not started.
  virtual void wait(Stream stream) = 0;
};

class Collectives {
 public:
  virtual ~Collectives() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // In place. Sums of bf16 are accumulated in fp32 and rounded once.
  virtual void all_reduce(void* data, std::int64_t count, DType type, ReduceOp op, Stream stream,
                          std::string_view label) = 0;
  virtual void broadcast(void* data, std::int64_t count, DType type, int root, Stream stream,
                         std::string_view label) = 0;

  // Zeroed memory for data that prepared all-reduces sum every step, where sharing it helps: ranks of one host then sum
  // it where it lies. Null otherwise: any memory will do. Collective; null too where a rank gives another size, as one that failed
  // before gives 0 so that the others do not wait for it.
  virtual std::shared_ptr<std::byte> shared_memory(std::size_t) { return nullptr; }
  // What that reserves beside so many bytes.
  virtual std::size_t scratch_bytes(std::size_t) const { return 0; }

  // Zeroed memory for what prepared sends and receives move between these ranks every step, where some memory is better for that
  // than other; null otherwise. Collective; sizes may differ, but null where one is 0, as a rank that failed before gives. A
  // send out of it meets in every step the receive into it that its peer prepared as its n-th of the pair, being itself the
  // n-th; both ends must lie in such memory.
  virtual std::shared_ptr<std::byte> transfer_memory(std::size_t) { return nullptr; }

  // A sum over the ranks, in place, of f32, f64 or bf16, with the same bits in every run. On the host the ranks'
  // values are added in rank order whatever the count, so that the bits of an element do not depend on the bucket it
  // is in either; what NCCL gives is in nccl_collectives.h.
  virtual std::unique_ptr<PreparedOperation> prepare_all_reduce(void* data, std::int64_t count, DType type,
                                                                std::string_view label) = 0;
  virtual std::unique_ptr<PreparedOperation> prepare_send(const void* data, std::int64_t count, DType type,
                                                          int peer, std::string_view label) = 0;
  virtual std::unique_ptr<PreparedOperation> prepare_receive(void* data, std::int64_t count, DType type,
                                                             int peer, std::string_view label) = 0;

  // Of gradient buckets, as measured where these collectives run best.
  virtual BucketSizes bucket_sizes() const { return {}; }

  void send(const void* data, std::int64_t count, DType type, int peer, Stream stream,
            std::string_view label);
  void receive(void* data, std::int64_t count, DType type, int peer, Stream stream, std::string_view label);
};

class Communicator;

// On host memory. Collective over all members; duplicates the communicator, so that its messages never meet
// those of others. Prepared operations must not outlive it.
std::unique_ptr<Collectives> make_mpi_collectives(const Communicator& communicator);

}  // namespace convoy::comm

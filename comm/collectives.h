// Collectives on tensor data, with the same interface on every backend: MPI on host memory, NCCL on
// device memory.
//
// All operations are ordered on a stream: a call uses its buffers after the work that is on the
// stream and before the work that is put there later. Host backends ignore the stream and are done
// when a call returns.
//
// All ranks make the same calls in the same order. The k-th send from rank a to rank b matches the
// k-th receive on b from a; there are no tags. `label` names the data in messages ("gradients
// bucket 3").
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

// An operation on fixed buffers that runs every step. The ranks that take part prepare it once;
// later calls allocate nothing. On a device, start() may block unless it is captured in a CUDA
// graph. With NCCL it may wait until the peers of all newly prepared transfers have connected; with
// copy engines, until the receiver has prepared the transfer.
class PreparedOperation {
 public:
  virtual ~PreparedOperation() = default;
  // Begins after the work on `stream`. The buffer belongs to the operation until wait().
  virtual void start(Stream stream) = 0;
  // Does what this rank can do for a started operation without waiting, and returns whether the
  // operation is done. It is cheap: a rank whose only thread computes can call it between kernels.
  // Always returns true on devices.
  virtual bool progress() = 0;
  // Makes later work on `stream` wait for the operation. Several streams may follow one operation.
  // wait() must still be called. Does nothing on the host.
  virtual void follow(Stream) {}
  // Makes later work on `stream` wait for the result. Returns at once if the operation was not
  // started.
  virtual void wait(Stream stream) = 0;
};

class Collectives {
 public:
  virtual ~Collectives() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Reduces in place on every rank. bf16 is summed in fp32 and rounded once.
  virtual void all_reduce(void* data, std::int64_t count, DType type, ReduceOp op, Stream stream,
                          std::string_view label) = 0;
  virtual void broadcast(void* data, std::int64_t count, DType type, int root, Stream stream,
                         std::string_view label) = 0;

  // Returns zeroed memory in which the ranks of one host can sum their data without messages, or
  // null if the ranks cannot share memory. Sums also work on any other memory, but then use
  // messages. Collective. Returns null on all ranks if the sizes differ. A rank that has already
  // failed passes size 0, so that the other ranks do not block.
  virtual std::shared_ptr<std::byte> shared_memory(std::size_t) { return nullptr; }
  // Returns the bytes that shared_memory(bytes) allocates on this rank in addition to `bytes`.
  virtual std::size_t scratch_bytes(std::size_t) const { return 0; }

  // Returns zeroed memory for the buffers of prepared sends and receives. Copy engines (the DMA
  // units of a GPU) can move data between such buffers. Both buffers of a transfer must be in such
  // memory, or neither. Returns null if copy engines cannot be used. The n-th prepared send to a
  // peer matches that peer's n-th prepared receive. Collective. Sizes may differ between ranks. A
  // rank that has already failed passes size 0; all ranks then get null.
  virtual std::shared_ptr<std::byte> transfer_memory(std::size_t) { return nullptr; }

  // Prepares a sum of f32, f64 or bf16 over the ranks, in place. The result is the same in every
  // run, to the bit. On the host, values are always added in rank order. See nccl_collectives.h for
  // the order in which NCCL adds.
  virtual std::unique_ptr<PreparedOperation> prepare_all_reduce(void* data, std::int64_t count, DType type,
                                                                std::string_view label) = 0;
  virtual std::unique_ptr<PreparedOperation> prepare_send(const void* data, std::int64_t count, DType type,
                                                          int peer, std::string_view label) = 0;
  virtual std::unique_ptr<PreparedOperation> prepare_receive(void* data, std::int64_t count, DType type,
                                                             int peer, std::string_view label) = 0;

  // Returns the sizes of gradient buckets that were measured to be the fastest with these
  // collectives.
  virtual BucketSizes bucket_sizes() const { return {}; }

  void send(const void* data, std::int64_t count, DType type, int peer, Stream stream,
            std::string_view label);
  void receive(void* data, std::int64_t count, DType type, int peer, Stream stream, std::string_view label);
};

class Communicator;

// Makes collectives on host memory. Collective over all members. Duplicates the communicator, so
// that its messages never mix with other messages. Prepared operations must not outlive the result.
std::unique_ptr<Collectives> make_mpi_collectives(const Communicator& communicator);

}  // namespace convoy::comm

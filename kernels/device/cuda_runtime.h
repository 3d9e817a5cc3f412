// Classes that own objects of the CUDA runtime: device memory, pinned memory, streams, events and
// captured graphs. Destructors free the object and never throw. Functions that take no ownership
// take plain handles (Stream, cudaStream_t, cudaEvent_t, pointers). An object belongs to the device
// that is current when the object is made. A failed call throws CudaError or OutOfMemory. CUDA
// builds only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/device/cuda_error.h"
#include "kernels/device/kernel.h"
#include "kernels/device/multiprocessors.h"

namespace convoy::kernels {

namespace detail {
struct FreeDevice {
  void operator()(std::byte* data) const { cudaFree(data); }
};
struct FreePinned {
  void operator()(std::byte* data) const { cudaFreeHost(data); }
};
struct DestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
struct DestroyExecutable {
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
}  // namespace detail

// Device memory, aligned to at least 256 bytes, with undefined content.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t bytes);
  std::byte* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }
  std::byte* release() { return data_.release(); }  // the caller must free it

 private:
  std::unique_ptr<std::byte, detail::FreeDevice> data_;
  std::size_t bytes_ = 0;
};

// Allocates page-locked host memory, which the caller frees with cudaFreeHost. Returns null for 0
// bytes. Throws OutOfMemory.
std::byte* allocate_pinned(std::size_t bytes);

// Page-locked host memory. Copies between it and the device can overlap computation.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(std::size_t bytes);
  std::byte* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<std::byte, detail::FreePinned> data_;
  std::size_t bytes_ = 0;
};

class CudaStream {
 public:
  // Multiprocessors that become free go to waiting kernels of the highest priority first.
  enum class Priority { low, normal, high };
  // Makes a stream that does not wait for the legacy default stream. Its kernels run on the
  // multiprocessors of `part`, or on all if `part` is null.
  explicit CudaStream(Priority priority = Priority::normal, const MultiprocessorPart* part = nullptr);
  cudaStream_t get() const { return stream_.get(); }
  Stream view() const { return Stream(stream_.get()); }
  void synchronize() const;

 private:
  std::unique_ptr<CUstream_st, detail::DestroyStream> stream_;
};

class CudaEvent {
 public:
  enum class Timing { off, on };
  explicit CudaEvent(Timing timing = Timing::off);
  cudaEvent_t get() const { return event_.get(); }
  void record(cudaStream_t stream) const;
  // For use in a capture: the graph records the event each time it reaches this point.
  void record_in_graph(cudaStream_t stream) const;
  void make_wait(cudaStream_t stream) const;  // orders later work on `stream` after the record
  void synchronize() const;
  // Returns the time between two events. Both need Timing::on and must have completed.
  static double microseconds(const CudaEvent& begin, const CudaEvent& end);

 private:
  std::unique_ptr<CUevent_st, detail::DestroyEvent> event_;
};

// The streams of one device: one for each of `compute_lanes` lanes of computation, and one for the
// copies of each direction. Kernels of different lanes may run at the same time. Communication has
// streams of its own (comm/nccl/nccl_channel.h). The kernels of all lanes run in `part`, if it is
// not null.
class StreamPool {
 public:
  explicit StreamPool(int compute_lanes, CudaStream::Priority priority = CudaStream::Priority::normal,
                      const MultiprocessorPart* part = nullptr);
  int compute_lanes() const { return static_cast<int>(compute_.size()); }
  const CudaStream& compute(int lane) const { return compute_.at(lane); }
  const CudaStream& to_device() const { return to_device_; }
  const CudaStream& to_host() const { return to_host_; }

 private:
  std::vector<CudaStream> compute_;
  CudaStream to_device_, to_host_;
};

using CudaGraph = std::unique_ptr<CUgraph_st, detail::DestroyGraph>;

// Captures the work that `record` enqueues on `stream`, without running it. `record` must neither
// synchronise nor allocate. If it throws, the capture ends and the exception is passed on.
CudaGraph capture_on(const CudaStream& stream, const std::function<void()>& record);

// Work that is captured once and launched as one unit. The function `record` enqueues the work on
// the stream that is passed to it. Other streams may only be used after they wait for an event of
// this stream. This stream must wait for them at the end, by an event or by join_later(). `record`
// must neither synchronise nor allocate.
class CapturedGraph {
 public:
  CapturedGraph() = default;
  // `priority` and `part` are those of the stream that `record` gets. A kernel of the graph keeps
  // the priority and the part of the stream on which it was captured.
  static CapturedGraph capture(const std::function<void(Stream)>& record,
                               CudaStream::Priority priority = CudaStream::Priority::normal,
                               const MultiprocessorPart* part = nullptr);
  // Makes the end of the graph wait for `stream`, unless join() does so earlier. Call this in
  // `record`. Returns false, and does nothing, if this thread captures nothing.
  static bool join_later(cudaStream_t stream);
  // Makes `stream` wait for all streams that were given to join_later() so far. Call this in
  // `record`.
  static void join(cudaStream_t stream);
  void launch(cudaStream_t stream) const;
  std::size_t nodes() const { return nodes_; }

 private:
  std::unique_ptr<CUgraphExec_st, detail::DestroyExecutable> executable_;
  std::size_t nodes_ = 0;
};

}  // namespace convoy::kernels

// Owners of what the CUDA runtime hands out: device and pinned memory, streams, events, captured graphs. Each
// frees in its destructor and never throws there. A view is the plain handle: `Stream` (kernel.h) or
// cudaStream_t, cudaEvent_t, a pointer. Everything belongs to the device that is current when it is made; a
// failed call throws CudaError or OutOfMemory. CUDA builds only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/device/cuda_error.h"
#include "kernels/device/kernel.h"

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
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
}  // namespace detail

// Device memory, aligned to at least 256 bytes; not initialised.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t bytes);
  std::byte* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }
  std::byte* release() { return data_.release(); }  // the caller frees it

 private:
  std::unique_ptr<std::byte, detail::FreeDevice> data_;
  std::size_t bytes_ = 0;
};

// Page-locked host memory, which the caller frees with cudaFreeHost; null for 0 bytes. Throws OutOfMemory.
std::byte* allocate_pinned(std::size_t bytes);

// Page-locked host memory, which copies to and from the device can overlap with.
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
  enum class Priority { normal, high };
  explicit CudaStream(Priority priority = Priority::normal);  // does not wait for the legacy default stream
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
  void record_in_graph(cudaStream_t stream) const;  // in a capture: when the graph gets there
  void make_wait(cudaStream_t stream) const;  // work enqueued on `stream` from now on waits for the record
  void synchronize() const;
  // Between two recorded and completed events that keep time.
  static double microseconds(const CudaEvent& begin, const CudaEvent& end);

 private:
  std::unique_ptr<CUevent_st, detail::DestroyEvent> event_;
};

// The streams of one device, made once: compute lanes, copies each way. Communication has its own, a pair a communicator
// (comm/nccl/nccl_channel.h).
class StreamPool {
 public:
  explicit StreamPool(int compute_lanes);
  int compute_lanes() const { return static_cast<int>(compute_.size()); }
  const CudaStream& compute(int lane) const { return compute_.at(static_cast<std::size_t>(lane)); }
  const CudaStream& to_device() const { return to_device_; }
  const CudaStream& to_host() const { return to_host_; }

 private:
  std::vector<CudaStream> compute_;
  CudaStream to_device_, to_host_;
};

// Work captured once and launched as one unit. `record` enqueues on the stream it is given, and on others only
// behind events that lead back to it, or that are joined later; it must not synchronise or allocate.
class CapturedGraph {
 public:
  CapturedGraph() = default;
  static CapturedGraph capture(const std::function<void(Stream)>& record);
  // From `record`: the graph's end comes behind what is on `stream`, one that it has forked, though nothing waits for that. False,
  // and nothing, where this thread captures nothing.
  static bool join_later(cudaStream_t stream);
  // From `record`: puts `stream` behind all that join_later was told of so far.
  static void join(cudaStream_t stream);
  void launch(cudaStream_t stream) const;
  std::size_t nodes() const { return nodes_; }

 private:
  std::unique_ptr<CUgraphExec_st, detail::DestroyGraph> executable_;
  std::size_t nodes_ = 0;
};

}  // namespace convoy::kernels

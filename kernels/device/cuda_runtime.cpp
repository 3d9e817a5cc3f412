#include "kernels/device/cuda_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "kernels/device/cuda_capture_lock.h"

namespace convoy::kernels {

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
  void* data = nullptr;
  const cudaError_t status = bytes == 0 ? cudaSuccess : cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    CONVOY_CUDA(cudaMemGetInfo(&free, &total));
    throw OutOfMemory(
        fmt::format("device memory: {:.2f} GiB requested, {:.2f} of {:.2f} GiB are free",
                    double(bytes) / (1 << 30), double(free) / (1 << 30), double(total) / (1 << 30)),
        bytes);
  }
  CONVOY_CUDA(status);
  data_.reset(static_cast<std::byte*>(data));
}

std::byte* allocate_pinned(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t status = bytes == 0 ? cudaSuccess : cudaMallocHost(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw OutOfMemory(
        fmt::format("page-locked memory of the host: {:.2f} GiB requested, the system refuses them",
                    double(bytes) / (1 << 30)),
        bytes);
  }
  CONVOY_CUDA(status);
  return static_cast<std::byte*>(data);
}

PinnedBuffer::PinnedBuffer(std::size_t bytes) : data_(allocate_pinned(bytes)), bytes_(bytes) {}

CudaStream::CudaStream(Priority priority, const MultiprocessorPart* part) {
  int lowest = 0, highest = 0;  // a higher priority has a lower number
  CONVOY_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  const int number = priority == Priority::high     ? highest
                     : priority == Priority::normal ? std::max(lowest - 1, highest)
                                                    : lowest;
  if (part != nullptr) {
    stream_.reset(part->make_stream(number));
    return;
  }
  cudaStream_t made = nullptr;
  CONVOY_CUDA(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, number));
  stream_.reset(made);
}

void CudaStream::synchronize() const { CONVOY_CUDA(cudaStreamSynchronize(get())); }

CudaEvent::CudaEvent(Timing timing) {
  cudaEvent_t made = nullptr;
  CONVOY_CUDA(
      cudaEventCreateWithFlags(&made, timing == Timing::on ? cudaEventDefault : cudaEventDisableTiming));
  event_.reset(made);
}

void CudaEvent::record(cudaStream_t stream) const { CONVOY_CUDA(cudaEventRecord(get(), stream)); }
void CudaEvent::record_in_graph(cudaStream_t stream) const {
  CONVOY_CUDA(cudaEventRecordWithFlags(get(), stream, cudaEventRecordExternal));
}
void CudaEvent::make_wait(cudaStream_t stream) const { CONVOY_CUDA(cudaStreamWaitEvent(stream, get(), 0)); }
void CudaEvent::synchronize() const { CONVOY_CUDA(cudaEventSynchronize(get())); }

double CudaEvent::microseconds(const CudaEvent& begin, const CudaEvent& end) {
  float milliseconds = 0;
  CONVOY_CUDA(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
  return double(milliseconds) * 1000;
}

StreamPool::StreamPool(int compute_lanes, CudaStream::Priority priority, const MultiprocessorPart* part) {
  if (compute_lanes < 1) throw std::invalid_argument("a stream pool needs at least one compute lane");
  for (int lane = 0; lane < compute_lanes; ++lane) compute_.emplace_back(priority, part);
}

namespace {

// While this thread captures a graph: the streams that it gave to join_later() and that no other
// stream waits for yet. Otherwise null.
thread_local std::vector<cudaStream_t>* streams_to_join = nullptr;

}  // namespace

bool CapturedGraph::join_later(cudaStream_t stream) {
  if (streams_to_join == nullptr) return false;
  if (std::ranges::find(*streams_to_join, stream) == streams_to_join->end())
    streams_to_join->push_back(stream);
  return true;
}

void CapturedGraph::join(cudaStream_t stream) {
  if (streams_to_join == nullptr) return;
  const CudaEvent joined;
  for (cudaStream_t other : *streams_to_join) {
    joined.record(other);
    joined.make_wait(stream);
  }
  streams_to_join->clear();
}

std::shared_mutex& capture_lock() {
  static std::shared_mutex lock;
  return lock;
}

CudaGraph capture_on(const CudaStream& stream, const std::function<void()>& record) {
  const std::shared_lock lock(capture_lock());
  // In ThreadLocal mode, most calls that are forbidden during a capture fail only in the capturing
  // thread. The lock excludes the calls that no thread may make during a capture.
  CONVOY_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  cudaGraph_t captured = nullptr;
  try {
    record();
  } catch (...) {
    cudaStreamEndCapture(stream.get(), &captured);
    cudaGetLastError();
    if (captured != nullptr) cudaGraphDestroy(captured);
    throw;
  }
  CONVOY_CUDA(cudaStreamEndCapture(stream.get(), &captured));
  return CudaGraph(captured);
}

CapturedGraph CapturedGraph::capture(const std::function<void(Stream)>& record, CudaStream::Priority priority,
                                     const MultiprocessorPart* part) {
  const CudaStream stream(priority, part);
  std::vector<cudaStream_t> others;
  const CudaGraph graph = capture_on(stream, [&] {
    std::vector<cudaStream_t>* const outer = std::exchange(streams_to_join, &others);
    try {
      record(stream.view());
      join(stream.get());
    } catch (...) {
      streams_to_join = outer;
      throw;
    }
    streams_to_join = outer;
  });
  CapturedGraph result;
  CONVOY_CUDA(cudaGraphGetNodes(graph.get(), nullptr, &result.nodes_));
  cudaGraphExec_t executable = nullptr;
  // Without this flag, all kernels get the priority of the stream on which the graph is launched.
  CONVOY_CUDA(cudaGraphInstantiate(&executable, graph.get(), cudaGraphInstantiateFlagUseNodePriority));
  result.executable_.reset(executable);
  return result;
}

void CapturedGraph::launch(cudaStream_t stream) const {
  CONVOY_CUDA(cudaGraphLaunch(executable_.get(), stream));
}

}  // namespace convoy::kernels

// A queue of ordered work. A Stream does not own its cudaStream_t; a CudaStream does. Host backends
// run in the calling thread and ignore the stream.
#pragma once

struct CUstream_st;

namespace convoy::kernels {

class Stream {
 public:
  constexpr Stream() = default;  // the device's default stream
  constexpr explicit Stream(CUstream_st* handle) : handle_(handle) {}
  constexpr CUstream_st* get() const { return handle_; }

 private:
  CUstream_st* handle_ = nullptr;
};

}  // namespace convoy::kernels

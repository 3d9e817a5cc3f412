// Turns NCCL's return codes into exceptions, and owns communicators. CUDA builds only. Internal to
// comm.
#pragma once

#include <nccl.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace convoy::comm {

struct NcclError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns for example "NCCL: remote process exited or there was a network error (socketProgress:
// connection closed)".
std::string nccl_reason(ncclResult_t status, ncclComm_t communicator);

// Throws for example "rank 2 (host node7): all_reduce loss: NCCL: …".
[[noreturn]] void throw_nccl_error(ncclResult_t status, std::string_view operation, ncclComm_t communicator);
inline void check_nccl(ncclResult_t status, std::string_view operation, ncclComm_t communicator = nullptr) {
  if (status != ncclSuccess) throw_nccl_error(status, operation, communicator);
}

// Owns an ncclComm_t. The destructor waits for the device and for the other ranks. While an
// exception unwinds the stack it aborts at once instead, because the other ranks may never come.
class NcclComm {
 public:
  NcclComm() = default;
  explicit NcclComm(ncclComm_t communicator) : communicator_(communicator) {}
  NcclComm(NcclComm&& other) noexcept;
  NcclComm& operator=(NcclComm&& other) noexcept;
  ~NcclComm();
  ncclComm_t get() const { return communicator_; }
  void abort() noexcept;

 private:
  ncclComm_t communicator_ = nullptr;
};

}  // namespace convoy::comm

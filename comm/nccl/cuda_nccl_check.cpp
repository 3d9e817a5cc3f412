#include <fmt/format.h>

#include <exception>
#include <utility>

#include "comm/mpi_check.h"
#include "comm/nccl/nccl_check.h"

namespace convoy::comm {

std::string nccl_reason(ncclResult_t status, ncclComm_t communicator) {
  std::string detail = ncclGetLastError(communicator);
  while (!detail.empty() && (detail.back() == '\n' || detail.back() == ' ')) detail.pop_back();
  for (char& c : detail)
    if (c == '\n') c = ' ';
  return fmt::format("NCCL: {}{}", ncclGetErrorString(status), detail.empty() ? "" : " (" + detail + ")");
}

void throw_nccl_error(ncclResult_t status, std::string_view operation, ncclComm_t communicator) {
  int rank = -1;
  if (MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) rank = -1;
  throw NcclError(fmt::format("rank {} (host {}): {}: {}", rank, this_host(), operation,
                              nccl_reason(status, communicator)));
}

NcclComm::NcclComm(NcclComm&& other) noexcept : communicator_(std::exchange(other.communicator_, nullptr)) {}

NcclComm& NcclComm::operator=(NcclComm&& other) noexcept {
  std::swap(communicator_, other.communicator_);
  return *this;
}

NcclComm::~NcclComm() {
  if (communicator_ == nullptr) return;
  if (std::uncaught_exceptions() > 0)
    abort();
  else
    ncclCommDestroy(communicator_);
}

void NcclComm::abort() noexcept {
  if (communicator_ != nullptr) ncclCommAbort(std::exchange(communicator_, nullptr));
}

}  // namespace convoy::comm

// Turns MPI's return codes into exceptions. Communicators return errors (MPI_ERRORS_RETURN), so
// that a failure names the operation, the rank and the host.
#pragma once

#include <mpi.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace convoy::comm {

struct MpiError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void throw_mpi_error(int code, std::string_view operation);

// "rank 2 (host node7): all_reduce loss: MPI_ERR_TRUNCATE: message truncated" on failure.
inline void check_mpi(int code, std::string_view operation) {
  if (code != MPI_SUCCESS) throw_mpi_error(code, operation);
}

// The name of this machine as the system gives it (gethostname).
std::string this_host();
// The first line of the MPI library's version text: "Open MPI v4.1.4, …".
std::string mpi_library();

}  // namespace convoy::comm

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

// Throws if a call failed, for example "rank 2 (host node7): all_reduce loss: MPI_ERR_TRUNCATE:
// message truncated".
inline void check_mpi(int code, std::string_view operation) {
  if (code != MPI_SUCCESS) throw_mpi_error(code, operation);
}

// Returns this machine's name, as gethostname gives it.
std::string this_host();
// Returns the first line of the MPI library's version text, such as "Open MPI v4.1.4, …".
std::string mpi_library();

}  // namespace convoy::comm

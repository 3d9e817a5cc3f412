#include "comm/mpi_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

namespace convoy::comm {

std::string this_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "an unknown MPI";
  const std::string_view whole(text.data(), static_cast<std::size_t>(length));
  return std::string(whole.substr(0, whole.find_first_of("\n,")));
}

void throw_mpi_error(int code, std::string_view operation) {
  // Over a network a call may fail because another rank has died, before the watchdog sees the
  // death. Wait, so that the watchdog can end the job with a message that names the dead rank.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  int rank = -1, length = 0;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  // If MPI is broken, these calls may fail, too. Throw the error in any case.
  if (MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) rank = -1;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  throw MpiError(fmt::format("rank {} (host {}): {}: {}", rank, this_host(), operation,
                             length > 0 ? std::string(text.data(), static_cast<std::size_t>(length))
                                        : fmt::format("MPI error {}", code)));
}

}  // namespace convoy::comm

// Cuts a message of any length into chunks that an MPI int can count. Internal to comm.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>

#include "comm/mpi_check.h"

namespace convoy::comm {

inline std::int64_t size_of(MPI_Datatype type) {
  int bytes = 0;
  check_mpi(MPI_Type_size(type, &bytes), "MPI_Type_size");
  return bytes;
}

// Calls body(offset in bytes, count of elements) for each chunk, in order. An empty message has no
// chunk.
template <typename Body>
void for_each_chunk(std::int64_t count, MPI_Datatype type, std::int64_t chunk_bytes, Body&& body) {
  const std::int64_t element = size_of(type);
  const std::int64_t most = std::clamp<std::int64_t>(chunk_bytes / element, 1, INT_MAX);
  for (std::int64_t first = 0; first < count; first += most)
    body(first * element, static_cast<int>(std::min(most, count - first)));
}

inline std::byte* at(void* base, std::int64_t offset) { return static_cast<std::byte*>(base) + offset; }
inline const std::byte* at(const void* base, std::int64_t offset) {
  return static_cast<const std::byte*>(base) + offset;
}

}  // namespace convoy::comm

// Writes and checks files with a seal, which is the SHA-256 of the rest of the file. The seal is in
// the first 512 bytes, a user block that HDF5's tools ignore. It is checked before HDF5 reads the
// file, so that HDF5's parser never sees a truncated or damaged checkpoint.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <stdexcept>

namespace convoy::app {

inline constexpr std::size_t kSealBytes = 512;

// Writes the image to a file, but in place of the first kSealBytes the seal of the bytes after
// them. Computes the seal while the rest is written. The write is atomic: the old file at `path`
// stays until the new file is complete. `path` must not be a pipe. Throws std::runtime_error, for
// example "<path>: cannot write: No space left on device".
void write_sealed(const std::filesystem::path& path, std::span<const std::byte> image);

// Thrown for a file that could be read but is no checkpoint, is truncated or is damaged.
struct DamagedFile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws DamagedFile if the seal is not valid, and std::runtime_error if the file cannot be read.
// Both messages name the file.
void check_seal(const std::filesystem::path& path);

}  // namespace convoy::app

// Files whose first 512 bytes hold the SHA-256 of the rest, in an HDF5 user block, which HDF5's
// tools pass over. The seal is checked before HDF5 reads the file, so a truncated or damaged
// checkpoint never reaches HDF5's parser.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <stdexcept>

namespace convoy::app {

inline constexpr std::size_t kSealBytes = 512;

// Writes the seal of the bytes that follow the first kSealBytes of `image` into those first bytes.
void seal(std::span<std::byte> image);

// Writes the file whole or not at all: until it is complete the old file at `path` stays. Throws
// std::runtime_error such as "<path>: cannot write: No space left on device".
void write_whole(const std::filesystem::path& path, std::span<const std::byte> image);

// The file was read, but is no checkpoint, or is cut short or damaged.
struct DamagedFile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws DamagedFile, or std::runtime_error if the file cannot be read; both name the file.
void check_seal(const std::filesystem::path& path);

}  // namespace convoy::app

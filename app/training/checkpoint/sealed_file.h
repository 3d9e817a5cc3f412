// Files whose first 512 bytes hold the SHA-256 of the rest (an HDF5 user block, which HDF5's own tools pass over).
// The seal is checked before HDF5 sees the file: a truncated or damaged checkpoint is an error message, never
// something for a parser of a binary format to survive.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace convoy::app {

inline constexpr std::size_t kSealBytes = 512;

// Writes the seal into the first kSealBytes of `image`, over what comes behind them.
void seal(std::span<std::byte> image);

// Whole or absent. Throws std::runtime_error "<path>: cannot write: No space left on device" and the like; what
// was at `path` before is then still there.
void write_whole(const std::filesystem::path& path, std::span<const std::byte> image);

// Throws std::runtime_error naming the file when it cannot be read, is no checkpoint, is cut short or damaged.
void check_seal(const std::filesystem::path& path);

}  // namespace convoy::app

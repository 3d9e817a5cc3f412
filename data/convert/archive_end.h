// Checks the end of an archive, which libarchive does not do: it accepts a tar file that is cut off
// between two entries. It also reads a zip file whose table at the end is cut off, but then gives
// no symbolic links.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace convoy::data {

class ArchiveEnd {
 public:
  // Takes the next bytes of the archive. Only its end is kept.
  void pass(std::span<const std::uint8_t> bytes);
  bool is_empty() const { return is_empty_; }

  // These throw std::runtime_error with the reason only. `streamed` means that libarchive has read
  // the zip file from start to end without its table.
  void require_tar() const;
  void require_zip(bool streamed) const;

 private:
  std::string kept_;
  bool is_empty_ = true, has_links_ = false;
};

// Returns the end of a file that is an archive.
ArchiveEnd end_of_file(const std::string& path);

}  // namespace convoy::data

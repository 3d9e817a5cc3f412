#include "data/convert/archive_end.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace convoy::data {
namespace {

constexpr std::size_t kTarRecord = 512;
// A zip file ends with a record of 22 bytes and a comment of at most 65,535 bytes. libarchive finds
// the record only in the last 16 KiB.
constexpr std::size_t kZipRecord = 22, kKept = kZipRecord + 65'535, kZipSearched = 16 << 10;
constexpr const char* kZipEnd = "PK\5\6";
constexpr const char* kZipTableEntry = "PK\1\2";

// Returns whether the bytes hold an entry of a zip file's table that is a symbolic link: one whose
// file mode, in the upper half of the attributes at byte 38, says so.
bool has_zip_link(const std::string& bytes) {
  constexpr std::size_t kHost = 5, kMode = 40, kUnix = 3;
  for (std::size_t at = bytes.find(kZipTableEntry); at != std::string::npos;
       at = bytes.find(kZipTableEntry, at + 1)) {
    if (at + kMode + 1 >= bytes.size()) return false;
    const auto type = static_cast<unsigned char>(bytes[at + kMode + 1]) >> 4;
    if (static_cast<unsigned char>(bytes[at + kHost]) == kUnix && type == 0xA) return true;
  }
  return false;
}

}  // namespace

void ArchiveEnd::pass(std::span<const std::uint8_t> bytes) {
  is_empty_ = is_empty_ && bytes.empty();
  constexpr std::size_t kOverlap = 41;  // bytes of a table's entry that has_zip_link() needs before its last
  const std::size_t before = std::min(kOverlap, kept_.size());
  kept_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  has_links_ = has_links_ || has_zip_link(kept_.substr(kept_.size() - bytes.size() - before));
  if (kept_.size() > kKept) kept_.erase(0, kept_.size() - kKept);
}

void ArchiveEnd::require_tar() const {
  const auto last = std::string_view(kept_).substr(kept_.size() - std::min(kept_.size(), kTarRecord));
  if (last.size() < kTarRecord || last.find_first_not_of('\0') != std::string::npos)
    throw std::runtime_error("a tar file ends with records of zeros, this one does not");
}

void ArchiveEnd::require_zip(bool streamed) const {
  const auto record =
      kept_.size() < kZipRecord ? std::string::npos : kept_.rfind(kZipEnd, kept_.size() - kZipRecord);
  if (record == std::string::npos)
    throw std::runtime_error("a zip file ends with a table of its files, this one does not");
  if (!streamed && kept_.size() - record > kZipSearched)
    throw std::runtime_error(
        "a comment of more than 16 KiB after the table of the zip file, which is not read");
  if (streamed && has_links_)
    throw std::runtime_error("a zip file with symbolic links inside other data, expected it unpacked");
}

ArchiveEnd end_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  std::string last(static_cast<std::size_t>(std::min<std::streamoff>(size, kKept)), '\1');
  file.seekg(-static_cast<std::streamoff>(last.size()), std::ios::end);
  file.read(last.data(), static_cast<std::streamsize>(last.size()));
  ArchiveEnd end;
  end.pass({reinterpret_cast<const std::uint8_t*>(last.data()), last.size()});
  return end;
}

}  // namespace convoy::data

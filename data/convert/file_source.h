// The files that a conversion reads, be they in a folder, in an archive or a single one. Archives are read
// in one pass over their content through libarchive; nothing is unpacked to disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace convoy::data {

using Bytes = std::vector<std::uint8_t>;

class FileSource {
 public:
  // `path` is relative to the folder or inside the archive, without a leading "./"; `read` gives the whole
  // content and may be called during the visit only. Files compressed one by one (.gz, .xz, …) are unpacked.
  // Returns whether to go on.
  using Visitor = std::function<bool(const std::string& path, const std::function<Bytes()>& read)>;

  virtual ~FileSource() = default;
  // Regular files; a folder's in the order of their paths, an archive's in its own order. Throws
  // std::runtime_error naming the source (and the file) that cannot be read.
  virtual void visit(const Visitor& visitor) const = 0;
  // Of a folder: those in it, at any depth. An archive need not name its folders.
  virtual std::vector<std::string> folders() const { return {}; }
};

// A folder, a tar or zip archive (compressed or not), or a single file.
std::unique_ptr<FileSource> open_source(const std::filesystem::path& source);

}  // namespace convoy::data

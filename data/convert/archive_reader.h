// One pass over a tar or zip archive, compressed in any way that libarchive knows, or over a single
// compressed file. The archive may be a file or an entry of another archive. Nothing is unpacked to
// disk.
#pragma once

#include <archive.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct archive_entry;

namespace convoy::data {

using Bytes = std::vector<std::uint8_t>;

class ArchiveReader {
 public:
  enum class Form : std::uint8_t { archive, compressed_file };
  enum class Kind : std::uint8_t { file, folder, symbolic_link, hard_link, special };
  struct Entry {
    Kind kind = Kind::file;
    std::string path;    // as normalised: no "./", no "a/../b", no leading "/"
    std::string target;  // of a link, as stored
  };

  // `name` stands for the archive in messages. Errors are std::runtime_error.
  ArchiveReader(const std::string& file, Form form);
  // Reads the current entry of `outer`, which must not move on meanwhile.
  ArchiveReader(ArchiveReader& outer, std::string name, Form form);
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  bool next(Entry& entry);  // false after the last
  // The next bytes of the current entry; 0 at its end.
  std::size_t read(std::span<std::uint8_t> to);
  // Gives the rest of the current entry to `sink` in pieces.
  void stream(const std::function<void(std::span<const std::uint8_t>)>& sink);
  // The whole current entry. Throws if it has more than `most` bytes, whatever size it declares.
  Bytes read_all(std::size_t most);

  // Tells whether the file is an archive at all; a damaged archive counts.
  static bool recognises(const std::string& file);
  // Throws if a file's compression is damaged: nothing can tell then what it holds.
  static void require_whole_compression(const std::string& file);

 private:
  static la_ssize_t read_outer(archive* reader, void* self, const void** buffer);
  static la_int64_t skip_outer(archive* reader, void* self, la_int64_t request);
  [[noreturn]] void fail() const;
  void require_end() const;

  struct Free {
    void operator()(archive* reader) const { archive_read_free(reader); }
  };
  std::string name_;
  std::unique_ptr<archive, Free> reader_;
  ArchiveReader* outer_ = nullptr;
  Bytes block_;
};

// Unpacks a file that is compressed by itself (.gz, .xz, .bz2, .zst); others are given back as they
// are.
Bytes unpack(Bytes content, const std::string& name, std::size_t most);

}  // namespace convoy::data

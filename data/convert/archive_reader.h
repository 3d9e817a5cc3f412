// Reads a tar or zip archive, or a single compressed file, once from start to end. All compressions
// that libarchive knows are accepted, one in another, too. Several tar files one after the other
// are one archive. The archive may be a file or an entry of another archive. Nothing is unpacked to
// disk.
#pragma once

#include <archive.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/convert/archive_end.h"
#include "data/convert/gzip.h"

struct archive_entry;

namespace convoy::data {

using Bytes = std::vector<std::uint8_t>;

class ArchiveReader {
 public:
  enum class Form : std::uint8_t { archive, compressed_file };
  enum class Kind : std::uint8_t { file, folder, symbolic_link, hard_link, special };
  struct Entry {
    Kind kind = Kind::file;
    std::string path;    // normalised: no "./", no "a/../b", no leading "/"
    std::string target;  // target of a link; as stored in the archive if the link is symbolic
  };

  // Opens an archive that is a file. All errors are std::runtime_error and begin with the name of
  // the archive.
  ArchiveReader(const std::string& file, Form form);
  // Opens an archive that is the current entry of the archive `outer`. `outer` must stay at this
  // entry until the inner archive is read. Error messages call the inner archive `name`.
  ArchiveReader(ArchiveReader& outer, std::string name, Form form);
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  bool next(Entry& entry);  // returns false after the last entry
  // Reads the next bytes of the current entry. Returns their number, which is 0 at the end of the
  // entry.
  std::size_t read(std::span<std::uint8_t> to);
  // Passes the rest of the current entry to `sink`, block by block.
  void stream(const std::function<void(std::span<const std::uint8_t>)>& sink);
  // Returns the whole current entry. Throws if it has more than `most` bytes, even if the archive
  // declares fewer. If `room` is given, calls it before every growth of the result, with the new
  // size.
  Bytes read_all(std::size_t most, const std::function<void(std::size_t)>& room = {});

  // Returns whether the file is an archive, even a damaged one.
  static bool recognises(const std::string& file);
  // Throws if the file is compressed but damaged. Such a file cannot be recognised as an archive
  // and must not be taken for a file of another kind.
  static void require_whole_compression(const std::string& file);

 private:
  void open_input(Input input);
  static la_ssize_t read_input(archive* reader, void* self, const void** buffer);
  [[noreturn]] void fail() const;
  void require_end();

  struct Free {
    void operator()(archive* reader) const { archive_read_free(reader); }
  };
  std::string name_;
  std::unique_ptr<archive, Free> reader_;
  // Set if the archive is compressed or lies in another archive. Otherwise libarchive reads the
  // file.
  std::unique_ptr<GzipReader> input_;
  Bytes block_;
  ArchiveEnd end_;  // the bytes that input_ has given
  std::string input_error_;
};

// Unpacks the content of a single compressed file (.gz, .xz, .bz2, .zst). Returns content that is
// not compressed unchanged. Throws std::runtime_error if the content is damaged or if the result
// has more than `most` bytes.
Bytes unpack(Bytes content, const std::string& name, std::size_t most);

}  // namespace convoy::data

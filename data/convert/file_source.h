// The files that a conversion reads: the files of a folder, of one or several archives, or a single
// file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/convert/archive_reader.h"

namespace convoy::data {

// The largest file, in bytes, that is read into memory.
inline constexpr std::size_t kLargestFile = 128 << 20;

// A file or folder that cannot be read; `reason` says why.
struct Unreadable {
  std::string path, reason;
  // If true, the item is a folder. If false, the item may still be one, for example if a link to a
  // folder is broken.
  bool folder = false;
  // If true, the item is a link to a folder that holds it.
  bool circle = false;
};

// The content of a source. Paths are relative to the folder or to the root of the archive. A link
// to a file is listed as a file, and a link to a folder as a folder with all its content.
struct Listing {
  std::vector<std::string> files, folders;  // sorted
  std::vector<Unreadable> unreadable;       // dangling links, links in a circle, folders without permission
  std::int64_t special = 0;                 // number of devices, pipes and sockets
  std::int64_t outside = 0;                 // number of archive entries whose path leads out of the archive
  std::int64_t replaced = 0;                // number of archive entries that a later one of the name replaces
};

class FileSource {
 public:
  virtual ~FileSource() = default;
  const std::string& name() const { return name_; }  // the name of the source, for messages

  // Throws std::runtime_error if the source itself cannot be read.
  virtual Listing list() = 0;

  // Returns whether read() may be called for any file at any time, from several threads. This is
  // false for archives, which visit() reads from start to end.
  virtual bool reads_by_name() const = 0;
  // Returns the whole content of a file, unpacked if the file is compressed (.gz, .xz, …). Throws
  // std::runtime_error with the reason only, without the path.
  virtual Bytes read(const std::string& path) const = 0;
  // Returns the size of a file on disk in bytes, or 0 if the file cannot be read. May be called
  // only if reads_by_name() is true.
  virtual std::size_t size(const std::string& path) const = 0;

  // The content of a visited file. It is valid during the visit only and can be read or streamed
  // once.
  struct Content {
    // A function that `read` calls before it grows its buffer, with the new size in bytes.
    using Room = std::function<void(std::size_t)>;
    std::function<Bytes(const Room&)> read;  // returns what FileSource::read() returns
    using Sink = std::function<void(std::span<const std::uint8_t>)>;
    // Passes the content to a sink block by block, so files larger than memory can be read.
    std::function<void(const Sink&)> stream;
  };
  // Visits one file. Returns whether the visit goes on to the next file.
  using Visitor = std::function<bool(const std::string& path, const Content& content)>;
  // Visits every file of the listing, in the order in which the source holds them. Call list()
  // first.
  virtual void visit(const Visitor& visitor) const = 0;

 protected:
  explicit FileSource(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};

// Opens a folder, a tar or zip archive (compressed or not), or a single file.
std::unique_ptr<FileSource> open_source(const std::filesystem::path& source);
// Opens archives and shows each as a folder: the files of "cats.tar" have the path "cats.tar/…".
// `source` is an archive of archives, a folder of archives, or a list of archives such as
// "shards/train-{000..146}.tar" or "shards/*.tar".
std::unique_ptr<FileSource> open_archives(const std::string& source);
// Returns whether `source` is a list of archives. A name of an existing file or folder is none.
bool is_archive_list(const std::string& source);
bool is_archive_path(const std::string& path);  // true for .tar, .tar.gz, .tgz, .zip, …

// Returns the names that a list of archives stands for: "a-{01..03}.tar" stands for three names.
std::vector<std::string> expand_braces(const std::string& pattern);

}  // namespace convoy::data

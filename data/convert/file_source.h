// The files that a conversion reads: of a folder, of an archive, of several archives, or a single
// one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/convert/archive_reader.h"

namespace convoy::data {

// The largest file that is read whole.
inline constexpr std::size_t kLargestFile = 128 << 20;

// A file or folder that cannot be read; `reason` says why.
struct Unreadable {
  std::string path, reason;
  bool folder = false;  // certainly; a link that leads nowhere may have led to one
};

// Paths are relative to the folder or inside the archive. A link to a file is a file, a link to a
// folder is a folder with its content.
struct Listing {
  std::vector<std::string> files, folders;  // sorted
  std::vector<Unreadable> unreadable;       // dangling links, links in a circle, folders without permission
  std::int64_t special = 0;                 // devices, pipes, sockets
  std::int64_t outside = 0;                 // names that lead out of their archive
};

class FileSource {
 public:
  virtual ~FileSource() = default;
  const std::string& name() const { return name_; }  // for messages

  // Throws std::runtime_error if the source itself cannot be read.
  virtual Listing list() = 0;

  // Tells whether read() gives any file at any time, on several threads. An archive can only be
  // visited.
  virtual bool reads_by_name() const = 0;
  // The whole content; files compressed by themselves (.gz, .xz, …) are unpacked. Throws
  // std::runtime_error with the reason alone.
  virtual Bytes read(const std::string& path) const = 0;
  // The bytes of a file as stored, or 0 if it cannot be read. The source must read by name.
  virtual std::size_t size(const std::string& path) const = 0;

  // A visited file: valid during the visit only, to be read or streamed once.
  struct Content {
    std::function<Bytes()> read;  // as above
    using Sink = std::function<void(std::span<const std::uint8_t>)>;
    std::function<void(const Sink&)> stream;  // the same in pieces, for files of any size
  };
  // Returns whether to go on.
  using Visitor = std::function<bool(const std::string& path, const Content& content)>;
  // Every file of the listing, in the source's own order. Call list() first.
  virtual void visit(const Visitor& visitor) const = 0;

 protected:
  explicit FileSource(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};

// A folder, a tar or zip archive (compressed or not), or a single file.
std::unique_ptr<FileSource> open_source(const std::filesystem::path& source);
// Archives as folders: the files of "cats.tar" have the path "cats.tar/…". `source` is an archive
// of archives, a folder with archives in it, or a list of archives: "shards/train-{000..146}.tar",
// "shards/*.tar".
std::unique_ptr<FileSource> open_archives(const std::string& source);
// Tells whether `source` is such a list rather than the name of something that exists.
bool is_archive_list(const std::string& source);
bool is_archive_path(const std::string& path);  // .tar, .tar.gz, .tgz, .zip, …

// The archives of an entry list, kept apart for tests: "a-{01..03}.tar" gives three names.
std::vector<std::string> expand_braces(const std::string& pattern);

}  // namespace convoy::data

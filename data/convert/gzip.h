// Unpacks gzip data and checks its checksums, which libarchive does not.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace convoy::data {

// Returns the next bytes of a stream in the buffer; returns their number, which is 0 at the end.
using Input = std::function<std::size_t(std::span<std::uint8_t>)>;

Input input_of(const std::string& path);  // the bytes of a file

// Returns whether the bytes begin as gzip data do.
bool is_gzip(std::span<const std::uint8_t> start);
bool is_gzip_file(const std::string& path);

// Reads a stream. If it is gzip data, of one member or of several, unpacks it. Bytes after the last
// member are ignored, as gzip(1) ignores them.
class GzipReader {
 public:
  explicit GzipReader(Input input);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Returns the number of bytes that it puts into `to`, which is 0 at the end. Throws
  // std::runtime_error if the data are damaged or cut short.
  std::size_t read(std::span<std::uint8_t> to);

 private:
  bool refill();
  bool next_member();

  Input input_;
  std::vector<std::uint8_t> block_;
  z_stream stream_{};  // next_in and avail_in are the bytes of `block_` that are not used yet
  bool is_gzip_ = false, ended_ = false;
};

}  // namespace convoy::data

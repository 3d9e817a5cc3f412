#include "data/convert/gzip.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace convoy::data {
namespace {

constexpr std::size_t kBlock = 1 << 18;
constexpr int kGzipOnly = 16 + MAX_WBITS;

}  // namespace

bool is_gzip(std::span<const std::uint8_t> start) {
  return start.size() >= 2 && start[0] == 0x1F && start[1] == 0x8B;
}

Input input_of(const std::string& path) {
  const auto file = std::make_shared<std::ifstream>(path, std::ios::binary);
  return [file](std::span<std::uint8_t> to) {
    file->read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size()));
    if (file->bad()) throw std::runtime_error("cannot read");
    return static_cast<std::size_t>(file->gcount());
  };
}

bool is_gzip_file(const std::string& path) {
  std::array<char, 2> start{};
  std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  return is_gzip({reinterpret_cast<const std::uint8_t*>(start.data()), start.size()});
}

GzipReader::GzipReader(Input input) : input_(std::move(input)), block_(kBlock) {
  while (stream_.avail_in < 2 && refill()) {
  }
  is_gzip_ = is_gzip(std::span(block_).first(stream_.avail_in));
  if (is_gzip_ && ::inflateInit2(&stream_, kGzipOnly) != Z_OK)
    throw std::runtime_error("no memory to unpack gzip data");
}

GzipReader::~GzipReader() {
  if (is_gzip_) ::inflateEnd(&stream_);
}

// Moves the unused bytes to the start of the block and reads more. Returns false at the end.
bool GzipReader::refill() {
  if (stream_.avail_in > 0) std::memmove(block_.data(), stream_.next_in, stream_.avail_in);
  stream_.next_in = block_.data();
  const std::size_t got = input_(std::span(block_).subspan(stream_.avail_in));
  stream_.avail_in += static_cast<uInt>(got);
  return got > 0;
}

// Returns whether another member follows the one that has ended.
bool GzipReader::next_member() {
  while (stream_.avail_in < 2 && refill()) {
  }
  return is_gzip({stream_.next_in, stream_.avail_in}) && ::inflateReset(&stream_) == Z_OK;
}

std::size_t GzipReader::read(std::span<std::uint8_t> to) {
  if (ended_ || to.empty()) return 0;
  if (!is_gzip_) {
    if (stream_.avail_in == 0) return input_(to);
    const std::size_t count = std::min<std::size_t>(stream_.avail_in, to.size());
    std::memcpy(to.data(), stream_.next_in, count);
    stream_.next_in += count, stream_.avail_in -= static_cast<uInt>(count);
    return count;
  }
  stream_.next_out = to.data();
  stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(to.size(), 1 << 30));
  const auto space = stream_.avail_out;
  while (stream_.avail_out == space && !ended_) {
    if (stream_.avail_in == 0 && !refill()) throw std::runtime_error("gzip data end too early");
    const int status = ::inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END)
      ended_ = !next_member();
    else if (status != Z_OK && status != Z_BUF_ERROR)
      throw std::runtime_error(fmt::format("gzip data: {}", stream_.msg != nullptr  ? stream_.msg
                                                            : status == Z_MEM_ERROR ? "no memory"
                                                                                    : "wrong bytes"));
  }
  return space - stream_.avail_out;
}

}  // namespace convoy::data

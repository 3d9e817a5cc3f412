#include "comm/watchdog/wire.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace convoy::comm {
namespace {

struct Header {
  std::uint32_t kind;
  std::uint32_t length;
};
// The largest size of a message's payload in bytes. No message is as large, and a socket's buffer
// can hold more.
constexpr std::uint32_t kMaxPayload = 1u << 16;

}  // namespace

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) ::close(fd_);
}

FrameWriter& FrameWriter::put(std::string_view text) {
  put(static_cast<std::uint32_t>(text.size()));
  payload_.append(text);
  return *this;
}

std::string_view FrameReader::take(std::size_t bytes) {
  if (bytes > rest_.size()) throw std::runtime_error("watchdog: a message of another rank is cut short");
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

FrameSocket::FrameSocket(UniqueFd fd) : fd_(std::move(fd)), open_(true) {
  const int flags = ::fcntl(fd_.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd_.get(), F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(fd_.get(), F_SETFD, FD_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("watchdog: cannot set up a socket: {}", std::strerror(errno)));
}

void FrameSocket::send(const Frame& frame) {
  if (!open_ || frame.payload.size() > kMaxPayload) return;
  const Header header{static_cast<std::uint32_t>(frame.kind),
                      static_cast<std::uint32_t>(frame.payload.size())};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += frame.payload;
  // If the socket's buffer is full, drop the message. The buffer holds many messages, so a full one
  // means that the peer has not read for long.
  ssize_t sent = 0;
  do {
    sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent > 0 && sent < static_cast<ssize_t>(bytes.size()))
    close();  // after a part of a message, the peer could not read later messages
}

// Reads up to `most` bytes that have arrived. Returns false if none have arrived, or if the
// connection has ended.
bool FrameSocket::read_some(std::size_t most) {
  std::array<char, 4096> buffer;
  const ssize_t got = ::recv(fd_.get(), buffer.data(), std::min(most, buffer.size()), MSG_DONTWAIT);
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (got <= 0) {
    open_ = false;
    return false;
  }
  incoming_.append(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

// Returns the number of bytes that are missing from the next frame: from its header or, once the
// header is complete, from the whole frame.
std::size_t FrameSocket::missing() const {
  Header header;
  if (incoming_.size() < sizeof header) return sizeof header - incoming_.size();
  std::memcpy(&header, incoming_.data(), sizeof header);
  return sizeof header + std::min(header.length, kMaxPayload) - incoming_.size();
}

void FrameSocket::take_frames(std::vector<Frame>& frames) {
  Header header;
  while (incoming_.size() >= sizeof header) {
    std::memcpy(&header, incoming_.data(), sizeof header);
    if (header.length > kMaxPayload) return close();
    if (incoming_.size() < sizeof header + header.length) break;
    frames.push_back({static_cast<FrameKind>(header.kind), incoming_.substr(sizeof header, header.length)});
    incoming_.erase(0, sizeof header + header.length);
  }
}

void FrameSocket::receive(std::vector<Frame>& frames) {
  while (open_ && read_some(SIZE_MAX)) {
  }
  take_frames(frames);
}

void FrameSocket::receive_one(std::vector<Frame>& frames) {
  while (open_ && missing() > 0 && read_some(missing())) {
  }
  if (missing() == 0) take_frames(frames);
}

void FrameSocket::close() {
  open_ = false;
  fd_ = UniqueFd();
}

std::pair<FrameSocket, FrameSocket> connected_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::runtime_error(fmt::format("watchdog: cannot make a socket pair: {}", std::strerror(errno)));
  return {FrameSocket(UniqueFd(ends[0])), FrameSocket(UniqueFd(ends[1]))};
}

}  // namespace convoy::comm

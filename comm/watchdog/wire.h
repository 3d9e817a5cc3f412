// Connections of the watchdogs: short messages over TCP between rank 0 (the hub) and every rank.
// They do not use MPI, so they arrive even if MPI is blocked. All ranks run the same program on the
// same kind of machine, so numbers are sent as they are in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace convoy::comm {

// Owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

enum class FrameKind : std::uint32_t {
  hello,      // rank -> hub: the job's token and the rank's identity
  welcome,    // hub -> rank: the rank belongs to the job
  overdue,    // rank -> hub: a wait has lasted too long
  query,      // hub -> rank: how far are you on this channel?
  state,      // rank -> hub: the answer
  failure,    // rank -> hub: an error of the rank's device ends the job
  abandon,    // rank -> hub: the rank leaves on an error that it prints itself
  diagnosis,  // hub -> rank: the job ends
  goodbye,    // both ways: an orderly end
};

struct Frame {
  FrameKind kind = FrameKind::hello;
  std::string payload;
};

// Writes the fields of a message one after the other. FrameReader must read them in the same order.
class FrameWriter {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T> FrameWriter& put(T value) {
    payload_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  FrameWriter& put(std::string_view text);
  Frame frame(FrameKind kind) { return {kind, std::move(payload_)}; }

 private:
  std::string payload_;
};

class FrameReader {
 public:
  explicit FrameReader(const Frame& frame) : rest_(frame.payload) {}
  // Both functions throw std::runtime_error if the frame is too short.
  template <typename T>
  requires std::is_arithmetic_v<T> T get() {
    T value;
    take(sizeof value).copy(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }
  std::string get_text() { return std::string(take(get<std::uint32_t>())); }

 private:
  std::string_view take(std::size_t bytes);
  std::string_view rest_;
};

// A connected stream socket that never blocks. No function throws: a peer that cannot be reached
// counts as closed.
class FrameSocket {
 public:
  FrameSocket() = default;
  explicit FrameSocket(UniqueFd fd);
  int fd() const { return fd_.get(); }
  bool open() const { return open_; }
  void send(const Frame& frame);
  // Appends the frames that have arrived. open() is false once the peer has closed and everything
  // is read.
  void receive(std::vector<Frame>& frames);
  // Appends at most one frame and leaves later bytes in the socket.
  void receive_one(std::vector<Frame>& frames);
  void close();
  // Keeps the connection open until the process ends, even after this object is destroyed.
  void leak() { fd_.release(); }

 private:
  bool read_some(std::size_t most);
  std::size_t missing() const;
  void take_frames(std::vector<Frame>& frames);

  UniqueFd fd_;
  std::string incoming_;
  bool open_ = false;
};

// Returns both ends of a connection within this process.
std::pair<FrameSocket, FrameSocket> connected_pair();

}  // namespace convoy::comm

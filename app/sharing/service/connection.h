// One client of the prediction service: the lines that it sends and the replies that it has not
// read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "comm/watchdog/wire.h"

namespace convoy::app {

class Connection {
 public:
  Connection(comm::UniqueFd fd, std::int64_t number) : fd_(std::move(fd)), number_(number) {}

  int fd() const { return fd_.get(); }
  std::int64_t number() const { return number_; }

  // Returns the events for poll(): input if `may_read`, output if a reply waits.
  short events(bool may_read) const;
  // receive() reads at most `most` bytes from the client. flush() sends the replies that wait to be
  // sent. Both return false if the client has gone.
  bool receive(std::size_t most);
  bool flush();

  // Returns the next line without its line end, or nothing if no complete line has arrived. If the
  // client has closed its sending side, its last line needs no line end. The line is valid until
  // the next receive().
  std::optional<std::string_view> next_line();
  // Returns the number of received bytes that next_line() has not returned.
  std::size_t incomplete_bytes() const { return incoming_.size() - taken_; }

  void send(std::string_view reply) { outgoing_ += reply; }
  std::size_t unsent_bytes() const { return outgoing_.size() - sent_; }
  // Ignores all further input. The connection can be closed once all replies are sent.
  void stop_reading() { ended_ = true, incoming_.clear(), taken_ = searched_ = 0; }
  bool ended() const { return ended_; }

  // The number of this client's requests that wait for an answer, and the bytes of their images.
  std::int64_t pending = 0, pending_bytes = 0;

 private:
  comm::UniqueFd fd_;
  std::int64_t number_;
  std::string incoming_, outgoing_;
  std::size_t taken_ = 0;     // bytes of `incoming_` that next_line() has returned
  std::size_t searched_ = 0;  // bytes of `incoming_` that were searched for a line end
  std::size_t sent_ = 0;      // bytes of `outgoing_` that are sent
  bool ended_ = false;        // whether the client sends no more, or its input is ignored
};

}  // namespace convoy::app

#include "app/sharing/service/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace convoy::app {
namespace {

bool try_again() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

short Connection::events(bool may_read) const {
  const int in = may_read && !ended_ ? POLLIN : 0, out = unsent_bytes() > 0 ? POLLOUT : 0;
  return static_cast<short>(in | out);
}

bool Connection::receive(std::size_t most) {
  if (ended_) return true;
  incoming_.erase(0, taken_);
  searched_ -= taken_, taken_ = 0;
  const std::size_t before = incoming_.size();
  incoming_.resize(before + most);
  const ssize_t got = ::recv(fd(), incoming_.data() + before, most, 0);
  incoming_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got == 0) ended_ = true;
  return got >= 0 || try_again();
}

bool Connection::flush() {
  while (unsent_bytes() > 0) {
    const ssize_t got = ::send(fd(), outgoing_.data() + sent_, unsent_bytes(), MSG_NOSIGNAL);
    if (got < 0) return try_again();
    sent_ += static_cast<std::size_t>(got);
  }
  outgoing_.clear(), sent_ = 0;
  return true;
}

std::optional<std::string_view> Connection::next_line() {
  const std::size_t found = incoming_.find('\n', searched_);
  const bool whole = found != std::string::npos;
  searched_ = whole ? found + 1 : incoming_.size();
  if (!whole && (!ended_ || taken_ == incoming_.size())) return std::nullopt;
  const std::string_view line =
      std::string_view(incoming_).substr(taken_, (whole ? found : incoming_.size()) - taken_);
  taken_ = searched_;
  return line;
}

}  // namespace convoy::app

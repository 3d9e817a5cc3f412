// Listens on a Unix socket for clients of the same user.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "comm/watchdog/wire.h"

namespace convoy::app {

class UnixListener {
 public:
  // Makes the socket with mode 0600. Replaces a socket on which nobody listens any more, such as
  // one that a dead process has left. Throws std::runtime_error in one line that names the path in
  // these cases:
  //   - A process listens on this socket.
  //   - The path belongs to something other than a socket.
  //   - The path is too long for a socket.
  explicit UnixListener(const std::filesystem::path& path);
  ~UnixListener();  // removes the socket, unless another one has its name by now
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  int fd() const { return fd_.get(); }
  struct Accepted {
    // A connection that does not block. It is -1 if no client waits, if the client is gone already,
    // or if `no_room` is set.
    comm::UniqueFd fd;
    // Whether a client waits, but the system has no file descriptor or memory left for it.
    bool no_room = false;
    uid_t user = 0;  // the user that the client's process runs as
  };
  Accepted accept() const;

 private:
  void bind(const std::filesystem::path& path);

  std::filesystem::path path_;
  comm::UniqueFd fd_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace convoy::app

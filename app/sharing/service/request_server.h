// Receives requests for predictions over a Unix socket and sends the answers (protocol.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "app/sharing/service/connection.h"
#include "app/sharing/service/request_queue.h"
#include "app/sharing/service/unix_listener.h"
#include "app/sharing/service/wake_event.h"

namespace convoy::app {

struct ServerOptions {
  std::filesystem::path path;
  std::vector<std::string> classes;  // the names of the network's classes
  std::size_t top = 5;               // classes of an answer, unless its request says how many
  // Nothing is read from a client while it has most_pending requests without an answer, or
  // most_unsent_bytes of replies that it has not read. Nothing is read from any client while the
  // images of all waiting requests take most_image_bytes.
  std::int64_t most_pending = 256;
  std::size_t most_unsent_bytes = std::size_t{4} << 20;
  std::int64_t most_image_bytes = std::int64_t{256} << 20;
  std::size_t most_clients = 128;
};

class RequestServer {
 public:
  // Listens, and serves all clients in one thread. `queue` must outlive the server. Throws
  // std::runtime_error in one line that names the path (unix_listener.h).
  RequestServer(ServerOptions options, RequestQueue& queue);
  // Sends the waiting replies, but for at most one second. Then removes the socket. All requests
  // must have been answered before (RequestQueue::close()).
  ~RequestServer();

 private:
  struct Reply {
    std::int64_t client;
    std::int64_t image_bytes;
    std::string line;
  };

  void run();
  void flush_for_a_second();
  void poll_once(std::chrono::milliseconds wait);
  void accept_clients();
  void refuse(const comm::UniqueFd& client, const std::string& reason) const;
  void take_lines(Connection& connection);
  void take_line(Connection& connection, std::string_view line);
  void distribute_replies();
  bool may_read(const Connection& connection) const;
  void erase_finished();
  void erase_gone(std::int64_t client);
  void post(Reply reply);

  const ServerOptions options_;
  RequestQueue& queue_;
  const UnixListener listener_;
  const WakeEvent wake_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::vector<Reply> replies_;  // guarded by mutex_
  // Only the server's thread uses the fields from here to full_.
  std::map<std::int64_t, Connection> clients_;
  std::int64_t accepted_ = 0;
  std::int64_t image_bytes_ = 0;  // bytes of the images of all requests that wait
  bool full_ = false;             // whether the system had no file descriptor or memory for another client
  std::thread thread_;
};

}  // namespace convoy::app

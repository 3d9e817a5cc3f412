#include "app/sharing/service/request_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "app/sharing/service/protocol.h"

namespace convoy::app {
namespace {

using namespace std::chrono_literals;

// The most bytes that are read from one client in a round of poll(), so that it does not keep other
// clients waiting.
constexpr std::size_t kReadBytes = std::size_t{64} << 10;

}  // namespace

RequestServer::RequestServer(ServerOptions options, RequestQueue& queue)
    : options_(std::move(options)), queue_(queue), listener_(options_.path), thread_([this] { run(); }) {}

RequestServer::~RequestServer() {
  stopping_ = true;
  wake_.signal();
  thread_.join();
}

void RequestServer::run() {
  try {
    while (!stopping_) poll_once(1000ms);
    flush_for_a_second();
  } catch (...) {
    queue_.fail(std::current_exception());
  }
}

void RequestServer::flush_for_a_second() {
  for (auto& [number, client] : clients_) client.stop_reading();
  const auto limit = std::chrono::steady_clock::now() + 1s;
  for (;;) {
    distribute_replies();
    erase_finished();
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(limit - std::chrono::steady_clock::now());
    if (clients_.empty() || left <= 0ms) return;
    poll_once(left);
  }
}

void RequestServer::poll_once(std::chrono::milliseconds wait) {
  std::vector<pollfd> waits{{wake_.fd(), POLLIN, 0}};
  // If the system has no room for another client, the socket stays readable and poll() returns at
  // once. So leave the socket out of one round.
  const bool accepts = !stopping_ && !std::exchange(full_, false);
  waits.push_back({accepts ? listener_.fd() : -1, POLLIN, 0});
  std::vector<std::int64_t> numbers;
  for (const auto& [number, client] : clients_) {
    waits.push_back({client.fd(), client.events(may_read(client)), 0});
    numbers.push_back(number);
  }
  ::poll(waits.data(), waits.size(), static_cast<int>((accepts || stopping_ ? wait : 100ms).count()));
  if (waits[0].revents != 0) wake_.clear();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Connection& client = clients_.at(numbers[i]);
    const int events = waits[i + 2].revents;
    const bool gone = (events & (POLLHUP | POLLERR | POLLNVAL)) != 0 ||
                      ((events & POLLIN) != 0 && !client.receive(kReadBytes)) ||
                      ((events & POLLOUT) != 0 && !client.flush());
    if (gone) erase_gone(numbers[i]);
  }
  distribute_replies();
  for (auto& [number, client] : clients_) take_lines(client);
  erase_finished();
  if (waits[1].revents != 0) accept_clients();
}

bool RequestServer::may_read(const Connection& client) const {
  return client.pending < options_.most_pending && client.unsent_bytes() < options_.most_unsent_bytes &&
         image_bytes_ < options_.most_image_bytes;
}

void RequestServer::accept_clients() {
  for (;;) {
    UnixListener::Accepted accepted = listener_.accept();
    full_ = accepted.no_room;
    if (accepted.fd.get() < 0) return;
    if (accepted.user != ::geteuid()) {
      refuse(accepted.fd, "the service belongs to another user");
    } else if (clients_.size() >= options_.most_clients) {
      refuse(accepted.fd,
             fmt::format("the service has {} clients, expected at most so many", clients_.size()));
    } else {
      const std::int64_t number = ++accepted_;
      clients_.emplace(number, Connection(std::move(accepted.fd), number));
    }
  }
}

// Sends one error line to a client that is not accepted. The line fits into the empty buffer of a
// new connection, so it is sent whole.
void RequestServer::refuse(const comm::UniqueFd& client, const std::string& reason) const {
  const std::string line = error_line("null", reason);
  [[maybe_unused]] const auto sent = ::send(client.get(), line.data(), line.size(), MSG_NOSIGNAL);
}

void RequestServer::take_lines(Connection& client) {
  while (may_read(client)) {
    const std::optional<std::string_view> line = client.next_line();
    if (line && line->size() <= kLongestLine) {
      take_line(client, *line);
    } else if (line || client.incomplete_bytes() > kLongestLine) {
      queue_.count_refused();
      client.send(error_line(
          "null", fmt::format("a line of more than {} MiB: the connection is closed", kLongestLine >> 20)));
      client.stop_reading();
    } else {
      break;
    }
  }
}

void RequestServer::take_line(Connection& client, std::string_view line) {
  if (line.empty() || line == "\r") return;
  ParsedRequest parsed = parse_request(line);
  if (!parsed.error.empty()) {
    queue_.count_refused();
    return client.send(error_line(parsed.id, parsed.error));
  }
  Request request;
  request.client = client.number();
  request.path = std::move(parsed.path);
  request.bytes = std::move(parsed.bytes);
  request.top = parsed.top.value_or(options_.top);
  const auto bytes = std::ssize(request.bytes);
  request.reply = [this, number = client.number(), bytes, id = std::move(parsed.id)](const Answer& answer) {
    post({number, bytes, reply_line(id, answer, options_.classes)});
  };
  ++client.pending, client.pending_bytes += bytes, image_bytes_ += bytes;
  queue_.push(std::move(request));
}

void RequestServer::post(Reply reply) {
  {
    const std::lock_guard lock(mutex_);
    replies_.push_back(std::move(reply));
  }
  wake_.signal();
}

void RequestServer::distribute_replies() {
  std::vector<Reply> replies;
  {
    const std::lock_guard lock(mutex_);
    replies.swap(replies_);
  }
  for (const Reply& reply : replies) {
    const auto client = clients_.find(reply.client);
    if (client == clients_.end()) continue;
    --client->second.pending, client->second.pending_bytes -= reply.image_bytes;
    image_bytes_ -= reply.image_bytes;
    client->second.send(reply.line);
  }
}

void RequestServer::erase_finished() {
  std::vector<std::int64_t> gone;
  for (auto& [number, client] : clients_) {
    const bool open = client.flush();
    const bool served =
        client.ended() && client.pending == 0 && client.unsent_bytes() == 0 && client.incomplete_bytes() == 0;
    if (!open || served) gone.push_back(number);
  }
  for (const std::int64_t number : gone) erase_gone(number);
}

void RequestServer::erase_gone(std::int64_t number) {
  queue_.drop(number);
  image_bytes_ -= clients_.at(number).pending_bytes;
  clients_.erase(number);
}

}  // namespace convoy::app

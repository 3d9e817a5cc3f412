// Tests the service's socket. A thread answers every request with fixed probabilities.
#include "app/sharing/service/request_server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "app/sharing/service/protocol.h"
#include "tests/app/training/checkpoint/checkpoint_fixture.h"

namespace convoy::app {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto kPatience = 20s;

// A client whose sends and receives block, but only for kPatience.
class Client {
 public:
  explicit Client(const std::filesystem::path& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.native().copy(address.sun_path, sizeof address.sun_path - 1);
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    const timeval patience{20, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  bool connected() const { return connected_; }
  int fd() const { return fd_.get(); }
  bool send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void end() const { ::shutdown(fd_.get(), SHUT_WR); }
  // Returns the next line without its end, or "closed".
  std::string line() {
    for (;;) {
      if (const auto end = read_.find('\n'); end != std::string::npos) {
        const std::string found = read_.substr(0, end);
        read_.erase(0, end + 1);
        return found;
      }
      char buffer[4096];
      const ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
      if (got <= 0) return got == 0 || errno == ECONNRESET ? "closed" : "late";
      read_.append(buffer, static_cast<std::size_t>(got));
    }
  }
  json reply() { return json::parse(line(), nullptr, false); }
  bool readable(std::chrono::milliseconds wait) const {
    pollfd waits{fd_.get(), POLLIN, 0};
    return ::poll(&waits, 1, static_cast<int>(wait.count())) == 1;
  }

 private:
  comm::UniqueFd fd_;
  bool connected_ = false;
  std::string read_;
};

std::string request(int id) { return "{\"id\": " + std::to_string(id) + ", \"image\": \"/a.jpg\"}\n"; }

class RequestServerOf : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    path_ = folder_ / "socket";
  }
  void TearDown() override {
    stop_predicting();
    queue_.close("the end");
    server_.reset();
    FolderTest::TearDown();
  }
  ServerOptions options() const { return {.path = path_, .classes = {"cat", "dog", "fox"}, .top = 2}; }
  void start(const ServerOptions& options) { server_.emplace(options, queue_); }
  void start() { start(options()); }
  void predict() {
    predicting_ = true;
    predictor_ = std::thread([this] {
      const std::vector<float> probabilities{0.25f, 0.625f, 0.125f};
      while (predicting_)
        for (const Request& one : queue_.next_batch(8, 5ms)) queue_.answer(one, probabilities);
    });
  }
  void stop_predicting() {
    predicting_ = false;
    if (predictor_.joinable()) predictor_.join();
  }
  template <typename Condition>
  static bool wait_until(const Condition& condition) {
    const auto limit = std::chrono::steady_clock::now() + kPatience;
    while (!condition() && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(2ms);
    return condition();
  }

  std::filesystem::path path_;
  RequestQueue queue_;
  std::optional<RequestServer> server_;
  std::atomic<bool> predicting_ = false;
  std::thread predictor_;
};

TEST_F(RequestServerOf, RequestsAreAnswered) {
  start();
  predict();
  Client client(path_);
  ASSERT_TRUE(client.send(request(1) + "\n\r\n" + R"({"id": "b", "bytes": "QUJD", "top": 9})" + "\n"));
  const json first = client.reply(), second = client.reply();
  EXPECT_EQ(first["id"], 1);
  EXPECT_EQ(first["classes"], (json{"dog", "cat"}));
  EXPECT_EQ(first["probabilities"], (json{0.625, 0.25}));
  EXPECT_GE(first["ms"], 0.0);
  EXPECT_EQ(second["id"], "b");
  EXPECT_EQ(second["classes"], (json{"dog", "cat", "fox"}));
}

TEST_F(RequestServerOf, AMalformedRequestDoesNotEndTheConnection) {
  start();
  predict();
  Client client(path_);
  ASSERT_TRUE(client.send("no json\n{\"id\": 5}\n\xff\xfe\n" + request(2)));
  EXPECT_EQ(client.line(), R"({"id": null, "error": "not JSON at byte 2"})");
  EXPECT_EQ(client.line(), R"({"id": 5, "error": "found neither image and bytes, expected one of them"})");
  EXPECT_EQ(client.reply()["error"], "not JSON at byte 1");
  EXPECT_EQ(client.reply()["id"], 2);
  EXPECT_EQ(queue_.counts().refused, 3);
}

TEST_F(RequestServerOf, ALineThatIsTooLongClosesItsConnection) {
  start();
  predict();
  Client client(path_), other(path_);
  const std::string longest = "{\"id\": 1, \"image\": \"/a\"" + std::string(kLongestLine - 24, ' ') + "}";
  ASSERT_EQ(longest.size(), kLongestLine);
  ASSERT_TRUE(client.send(longest + "\n"));
  EXPECT_EQ(client.reply()["id"], 1);
  client.send(longest + " ");
  EXPECT_EQ(client.line(),
            R"({"id": null, "error": "a line of more than 32 MiB: the connection is closed"})");
  EXPECT_EQ(client.line(), "closed");
  ASSERT_TRUE(other.send(request(3)));
  EXPECT_EQ(other.reply()["id"], 3);
}

TEST_F(RequestServerOf, AClientThatSendsNoMoreGetsItsAnswers) {
  start();
  Client client(path_);
  std::string last = request(2);
  last.pop_back();  // the last line needs no line end
  ASSERT_TRUE(client.send(request(1) + last));
  client.end();
  ASSERT_TRUE(wait_until([&] { return queue_.waiting() == 2; }));
  predict();
  EXPECT_EQ(client.reply()["id"], 1);
  EXPECT_EQ(client.reply()["id"], 2);
  EXPECT_EQ(client.line(), "closed");
}

TEST_F(RequestServerOf, RequestsOfAClientThatVanishesAreForgotten) {
  start();
  Client stays(path_);
  std::vector<Request> taken;
  {
    Client vanishes(path_);
    ASSERT_TRUE(vanishes.send(request(1) + request(2)));
    ASSERT_TRUE(wait_until([&] { return queue_.waiting() == 2; }));
    taken = queue_.next_batch(1, 0ms);
  }
  ASSERT_TRUE(wait_until([&] { return queue_.waiting() == 0; }));
  queue_.answer(taken[0], std::vector<float>{1, 0, 0});  // its client has gone
  predict();
  ASSERT_TRUE(stays.send(request(3)));
  EXPECT_EQ(stays.reply()["id"], 3);
}

TEST_F(RequestServerOf, AReaderThatIsSlowIsNotReadFrom) {
  ServerOptions small = options();
  small.most_pending = 10;
  small.most_unsent_bytes = 1000;
  start(small);
  Client slow(path_), other(path_);
  std::string many;
  for (int i = 0; i < 100; ++i) many += request(i);
  ASSERT_TRUE(slow.send(many));
  ASSERT_TRUE(wait_until([&] { return queue_.waiting() == 10; }));
  std::this_thread::sleep_for(30ms);
  EXPECT_EQ(queue_.waiting(), 10u);
  predict();
  ASSERT_TRUE(other.send(request(1)));
  EXPECT_EQ(other.reply()["id"], 1);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(slow.reply()["id"], i);
  // If a client sends and never reads, its socket and the server's buffer for it become full. Then
  // its sends must fail.
  const timeval short_time{0, 300'000};
  ::setsockopt(slow.fd(), SOL_SOCKET, SO_SNDTIMEO, &short_time, sizeof short_time);
  bool sent = true;
  for (int i = 0; i < 1000 && sent; ++i) sent = slow.send(many);
  EXPECT_FALSE(sent);
  ASSERT_TRUE(other.send(request(2)));
  EXPECT_EQ(other.reply()["id"], 2);
}

TEST_F(RequestServerOf, ImagesThatWaitAreBounded) {
  ServerOptions small = options();
  small.most_image_bytes = 3000;
  start(small);
  Client first(path_), second(path_);
  const std::string image = "{\"bytes\": \"" + std::string(2000, 'A') + "\"}\n";
  ASSERT_TRUE(first.send(image + image + image));
  ASSERT_TRUE(wait_until([&] { return queue_.waiting() == 2; }));
  ASSERT_TRUE(second.send(image));
  std::this_thread::sleep_for(30ms);
  EXPECT_EQ(queue_.waiting(), 2u);
  predict();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(first.reply().contains("classes"));
  EXPECT_TRUE(second.reply().contains("classes"));
}

TEST_F(RequestServerOf, ManyClientsAreServedAndTooManyRefused) {
  ServerOptions few = options();
  few.most_clients = 20;
  start(few);
  predict();
  std::vector<Client> clients;
  for (int i = 0; i < 20; ++i) clients.emplace_back(path_);
  for (int round = 0; round < 3; ++round) {
    for (Client& client : clients) ASSERT_TRUE(client.send(request(round)));
    for (Client& client : clients) ASSERT_EQ(client.reply()["id"], round);
  }
  Client refused(path_);
  EXPECT_NE(refused.line().find("the service has 20 clients"), std::string::npos);
  EXPECT_EQ(refused.line(), "closed");
  clients.pop_back();
  // The server must notice soon that a client has gone.
  EXPECT_TRUE(wait_until([&] {
    Client next(path_);
    return next.send(request(9)) && next.line().starts_with("{\"id\": 9,");
  }));
}

TEST_F(RequestServerOf, TheEndRefusesWhatWaitsAndRemovesTheSocket) {
  start();
  Client client(path_);
  ASSERT_TRUE(client.send(request(1)));
  ASSERT_TRUE(wait_until([&] { return queue_.waiting() == 1; }));
  queue_.close("the service has ended");
  server_.reset();
  EXPECT_EQ(client.line(), R"({"id": 1, "error": "the service has ended"})");
  EXPECT_EQ(client.line(), "closed");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(RequestServerOf, RepliesThatWaitAreSentAtTheEnd) {
  start();
  predict();
  Client client(path_);
  constexpr int kRequests = 3000;  // their replies do not fit into the socket's buffer
  std::string many;
  for (int i = 0; i < kRequests; ++i) many += request(i);
  ASSERT_TRUE(client.send(many));
  ASSERT_TRUE(wait_until([&] { return queue_.counts().predicted == kRequests; }));
  stop_predicting();
  std::thread ending([this] { server_.reset(); });
  std::vector<std::string> lines;
  while (lines.size() <= kRequests && lines.emplace_back(client.line()) != "closed") continue;
  ending.join();
  ASSERT_EQ(lines.size(), kRequests + 1u);
  for (int i = 0; i < kRequests; ++i) ASSERT_EQ(json::parse(lines[i])["id"], i);
}

TEST_F(RequestServerOf, OtherUsersAreRefused) {
  start();
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  for (const auto& [mode, expected] : {std::pair{0600, 1}, std::pair{0666, 2}}) {
    std::filesystem::permissions(folder_, std::filesystem::perms::all);
    std::filesystem::permissions(path_, std::filesystem::perms(mode));
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setuid(65534) != 0) ::_exit(9);
      Client client(path_);
      if (!client.connected()) ::_exit(1);
      ::_exit(client.line() == R"({"id": null, "error": "the service belongs to another user"})" &&
                      client.line() == "closed"
                  ? 2
                  : 3);
    }
    int outcome = 0;
    ::waitpid(child, &outcome, 0);
    EXPECT_EQ(WEXITSTATUS(outcome), expected) << mode;
  }
}

TEST_F(RequestServerOf, ADeadProcessLeavesASocketThatIsReplaced) {
  const pid_t child = ::fork();
  if (child == 0) {
    const UnixListener left(path_);
    ::_exit(0);  // runs no destructor
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(std::filesystem::is_socket(path_));
  start();
  predict();
  Client client(path_);
  ASSERT_TRUE(client.send(request(1)));
  EXPECT_EQ(client.reply()["id"], 1);
}

TEST_F(RequestServerOf, NothingInUseIsReplaced) {
  start();
  EXPECT_EQ(error_of([&] { UnixListener second(path_); }),
            path_.string() + ": another process listens on this socket");
  EXPECT_TRUE(Client(path_).connected());
  write_content(folder_ / "file", "text");
  EXPECT_EQ(error_of([&] { UnixListener file(folder_ / "file"); }),
            (folder_ / "file").string() + ": is no socket, expected a name that is free");
  EXPECT_EQ(content_of(folder_ / "file"), "text");
  const std::filesystem::path nowhere = folder_ / "nowhere/socket";
  EXPECT_EQ(error_of([&] { UnixListener missing(nowhere); }),
            nowhere.string() + ": cannot open its folder: No such file or directory");
  const std::filesystem::path longest = folder_ / std::string(107 - folder_.string().size() - 1, 'x');
  EXPECT_EQ(error_of([&] { UnixListener fits(longest); }), "");
  EXPECT_EQ(error_of([&] { UnixListener fits(longest.string() + "x"); }),
            longest.string() + "x: a path of 108 bytes, expected at most 107 of a socket's");
}

}  // namespace
}  // namespace convoy::app

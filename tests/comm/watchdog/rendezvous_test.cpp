// Tests how ranks find the watchdog of rank 0, and the messages that they send.
#include "comm/watchdog/rendezvous.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "comm/watchdog/wire.h"

namespace convoy::comm {
namespace {

using std::chrono::milliseconds;

// While a rank connects, it must read up to the welcome message and no further. Later messages are
// for the watchdog, which does not exist yet.
TEST(Wire, LeavesLaterMessagesUnread) {
  auto [here, there] = connected_pair();
  there.send({FrameKind::welcome, {}});
  there.send(FrameWriter().put(2).put(std::string_view("reason")).frame(FrameKind::failure));
  there.send({FrameKind::goodbye, {}});
  there.close();
  std::vector<Frame> frames;
  here.receive_one(frames);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].kind, FrameKind::welcome);
  EXPECT_TRUE(here.open());
  here.receive_one(frames);
  ASSERT_EQ(frames.size(), 2u);
  FrameReader reader(frames[1]);
  EXPECT_EQ(reader.get<int>(), 2);
  EXPECT_EQ(reader.get_text(), "reason");
  EXPECT_THROW(reader.get<int>(), std::runtime_error);
  here.receive(frames);
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[2].kind, FrameKind::goodbye);
  EXPECT_FALSE(here.open());
}

TEST(Rendezvous, IgnoresStrangers) {
  HubListener listener(true);
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    HubAddress wrong = listener.address();
    wrong.token = "not the token";
    try {
      connect_to_hub(wrong, {1, "elsewhere", 1}, milliseconds(1000));
    } catch (const std::runtime_error&) {
      ::_exit(0);
    }
    ::_exit(1);
  }
  ::usleep(100'000);
  const pid_t rank = ::fork();
  if (rank == 0) {
    const FrameSocket socket = connect_to_hub(HubAddress::parse(listener.address().serialized()),
                                              {1, "host", 42}, milliseconds(5000));
    ::_exit(socket.open() ? 0 : 1);
  }
  const auto peers = listener.accept(2, milliseconds(5000));
  ASSERT_EQ(peers.size(), 1u);
  EXPECT_TRUE(peers[0].socket.open());
  EXPECT_EQ(peers[0].who.to_string(), "rank 1 (host host, pid 42)");
  for (const pid_t pid : {stranger, rank}) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST(Rendezvous, SaysWhereNobodyListens) {
  HubAddress address;
  {
    const HubListener listener(true);
    address = listener.address();
  }
  try {
    connect_to_hub(address, {3, "host", 1}, milliseconds(500));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("rank 3 cannot reach rank 0 (127.0.0.1:"), std::string::npos);
  }
}

}  // namespace
}  // namespace convoy::comm

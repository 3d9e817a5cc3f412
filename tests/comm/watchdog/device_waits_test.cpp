// Tests how the watchdog follows collectives that a device runs on its own.
#include <gtest/gtest.h>

#include "comm/watchdog/wait_registry.h"

namespace convoy::comm {
namespace {

using std::chrono::seconds;

struct FakeDevice : DeviceOperations {
  Progress progress() const override { return now; }
  std::string failure() const override { return error; }
  Progress now;
  std::string error;
};

struct DeviceWaits : testing::Test {
  DeviceWaits() { registry.attach(registry.open_channel(7, {0, 1}), device); }
  void look(std::uint64_t entered, std::uint64_t finished, const char* name) {
    device.now = {entered, finished, OperationName("all_reduce", name)};
    EXPECT_FALSE(registry.look_at_devices(time));
  }
  WaitRegistry registry;
  FakeDevice device;
  Clock::time_point time{seconds(100)};
};

TEST_F(DeviceWaits, GrowWhileTheDeviceStaysInOneOperation) {
  look(3, 2, "bucket 2");
  EXPECT_FALSE(registry.overdue(time + seconds(9), seconds(10)));
  time += seconds(10);
  look(3, 2, "bucket 2");
  const auto overdue = registry.overdue(time, seconds(10));
  ASSERT_TRUE(overdue);
  EXPECT_EQ(overdue->operation, "all_reduce bucket 2");
  EXPECT_EQ(overdue->sequence, 3u);
  EXPECT_EQ(overdue->channel_key, 7u);
  EXPECT_EQ(overdue->members, (std::vector<int>{0, 1}));
}

// Whenever the watchdog looks, the device is in another operation of the same name. So the step
// makes progress, and no operation may count as overdue.
TEST_F(DeviceWaits, BeginAnewWithEveryOperation) {
  for (std::uint64_t step = 1; step <= 20; ++step) {
    look(step, step - 1, "bucket 0");
    EXPECT_FALSE(registry.overdue(time + seconds(1), seconds(2)));
    time += seconds(1);
  }
}

TEST_F(DeviceWaits, EndWithTheOperation) {
  look(3, 2, "bucket 2");
  time += seconds(60);
  look(3, 3, "bucket 2");
  EXPECT_FALSE(registry.overdue(time, seconds(10))) << "it computes: no rank is waited for";
  const RankState state = registry.state(7, time);
  EXPECT_EQ(state.entered, 3u);
  EXPECT_EQ(state.waiting_in, "");
  EXPECT_EQ(state.last_operation, "all_reduce bucket 2");
}

TEST_F(DeviceWaits, ForgiveATimeInWhichTheProcessWasStopped) {
  look(1, 0, "bucket 0");
  time += seconds(60);
  registry.forgive(seconds(60));
  look(1, 0, "bucket 0");
  EXPECT_FALSE(registry.overdue(time, seconds(10)));
}

TEST_F(DeviceWaits, TellOfAFailureOnce) {
  device.error = "all_reduce bucket 0: NCCL: remote process exited";
  EXPECT_EQ(registry.look_at_devices(time), device.error);
  EXPECT_EQ(registry.look_at_devices(time), std::nullopt);
}

// Several devices may begin an operation between two looks of the watchdog. The rank's last
// operation must be the one that began last.
TEST_F(DeviceWaits, KnowWhichOfSeveralDevicesWasTheLast) {
  FakeDevice other;
  registry.attach(registry.open_channel(8, {0, 1}), other);
  other.now = {1, 1, OperationName("send", "conv1"), 500};
  device.now = {1, 1, OperationName("all_reduce", "bucket 0"), 600};
  EXPECT_FALSE(registry.look_at_devices(time));
  EXPECT_EQ(registry.state(7, time).last_operation, "all_reduce bucket 0");
  other.now = {2, 2, OperationName("send", "conv2"), 700};
  device.now = {2, 2, OperationName("all_reduce", "bucket 1"), 650};
  EXPECT_FALSE(registry.look_at_devices(time));
  EXPECT_EQ(registry.state(7, time).last_operation, "send conv2");
}

TEST_F(DeviceWaits, AreGoneWithTheDevice) {
  look(1, 0, "bucket 0");
  registry.detach(device);
  EXPECT_FALSE(registry.overdue(time + seconds(60), seconds(10)));
}

}  // namespace
}  // namespace convoy::comm

// Tests how orders reach a running `convoy share`.
#include "app/sharing/inbox.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "app/errors.h"
#include "app/training/run_lock.h"

namespace convoy::app {
namespace {

namespace fs = std::filesystem;

class ShareInbox : public testing::Test {
 protected:
  ShareInbox() : out_(fs::path(testing::TempDir()) / ("convoy_inbox_" + std::to_string(::getpid()))) {
    fs::create_directories(out_);
    std::ofstream(out_ / Inbox::kReport) << R"({"jobs": [{"name": "a", "status": "running"}]})";
  }
  ~ShareInbox() override { fs::remove_all(out_); }

  const fs::path out_;
};

TEST_F(ShareInbox, AnOrderStaysUntilItIsRemoved) {
  const Inbox inbox(out_);
  EXPECT_TRUE(inbox.orders().empty());
  request_removal(out_, "a");
  ASSERT_EQ(inbox.orders().size(), 1u);
  EXPECT_TRUE(inbox.orders()[0].removes());
  EXPECT_EQ(inbox.orders()[0].file.stem(), "a");
  Inbox::remove(inbox.orders()[0]);
  EXPECT_TRUE(inbox.orders().empty());
}

TEST_F(ShareInbox, NobodyTakesOrdersAfterTheEnd) {
  { const Inbox inbox(out_); }
  EXPECT_THROW(request_removal(out_, "a"), UsageError);
  EXPECT_THROW(request_removal(out_, "b"), UsageError) << "there is no such job";
}

// A process may ask whether a run of `convoy share` reads orders in this folder. That must not
// disturb a run that starts at the same moment.
TEST_F(ShareInbox, AskingStopsNoRunThatStarts) {
  { const Inbox inbox(out_); }
  std::atomic<bool> stop = false;
  std::thread asks([&] {
    while (!stop) {
      try {
        request_removal(out_, "a");
      } catch (const std::exception&) {
      }
    }
  });
  for (int run = 0; run < 300; ++run) {
    EXPECT_NO_THROW({
      const RunLock lock(out_);
      const Inbox inbox(out_);
    });
  }
  stop = true;
  asks.join();
}

}  // namespace
}  // namespace convoy::app

// The main function of tests that run on several ranks. It starts MPI once. Rank 0 prints the names
// of the tests, and the other ranks only their failures. If a test fails on one rank, the program
// fails on all.
#include <gtest/gtest.h>

#include <cstdio>
#include <optional>

#include "tests/mpi/world.h"

namespace convoy::test {
namespace {

std::optional<comm::MpiEnvironment> the_environment;

class FailuresOnly : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override { test_ = &test; }
  void OnTestEnd(const testing::TestInfo&) override { test_ = nullptr; }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s.%s: %s:%d: %s\n", world().rank(),
                 test_ ? test_->test_suite_name() : "?", test_ ? test_->name() : "?",
                 result.file_name() ? result.file_name() : "?", result.line_number(), result.message());
  }
  // The current test. It is stored here because GoogleTest cannot name it while it reports a
  // failure: it holds its lock then.
  const testing::TestInfo* test_ = nullptr;
};

// Ends every test in a barrier, so that all ranks run the same test. A rank that went ahead after a
// failure would meet the other ranks in a different collective.
class BarrierAfterTest : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override { world().barrier(test.name()); }
};

}  // namespace

comm::MpiEnvironment& environment() { return *the_environment; }

}  // namespace convoy::test

int main(int argc, char** argv) {
  using namespace convoy;
  testing::InitGoogleTest(&argc, argv);
  test::the_environment.emplace(std::chrono::seconds(60));
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (test::world().rank() != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new test::FailuresOnly);
  }
  listeners.Append(new test::BarrierAfterTest);
  const int failed = RUN_ALL_TESTS();
  const int any = test::world().all_reduce(std::int32_t{failed}, comm::ReduceOp::max, "test result");
  test::the_environment.reset();
  return any;
}

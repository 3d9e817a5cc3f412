// The main of tests that run on several ranks: MPI once for all of them, rank 0 prints the tests'
// names, the others their failures alone, and the program fails on every rank when it failed on
// one.
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
  // GoogleTest holds its lock while it reports a failure: a call for the current test would then
  // wait for ever.
  const testing::TestInfo* test_ = nullptr;
};

// Ranks must run the same tests: a rank that skips ahead after a failure would meet the others in
// another collective. So every test ends in a barrier.
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

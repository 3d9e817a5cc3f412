// Tests on one or several ranks that a step of a session makes no large allocation. Also tests that
// a session of several members is refused on several ranks.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "app/model/zoo/zoo.h"
#include "comm/collectives.h"
#include "tests/app/execute/whole_session.h"
#include "tests/mpi/world.h"

namespace {
// Counts allocations of more than 1024 bytes, of which a step must make none. Smaller ones do not
// count, because oneDNN allocates a short list of arguments in every call.
std::atomic<long> allocation_count = 0;

void count(std::size_t bytes) {
  if (bytes > 1024) ++allocation_count;
}
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  count(bytes);
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  count(bytes);
  return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace convoy::app {
namespace {

TEST(Session, AStepAllocatesNothing) {
  const auto ranks = comm::make_mpi_collectives(test::world());
  for (const bool synchronised : {true, false}) {
    StepOptions options;
    options.synchronised_batch_norm = synchronised;
    options.clip = true;
    options.members[0].hyperparameters.largest_norm = 1;
    Session session = whole_session(make_network("wrn10_1", {4, 3, 32, 32}, 10), options, *ranks);
    StepInput& input = session.input();
    input.control().valid = 4;
    input.control().global_valid = 4 * ranks->size();
    input.control().learning_rate = 0.01f;
    const auto step = [&] {
      session.start(StepKind::train);
      return session.finish_step().metrics[0];
    };
    step();
    step();
    const long before = allocation_count;
    for (int i = 0; i < 3; ++i) step();
    EXPECT_EQ(allocation_count, before) << (synchronised ? "synchronised" : "local") << " batch norm";
  }
}

TEST(Session, TrainsMembersOnOneRankOnly) {
  const auto ranks = comm::make_mpi_collectives(test::world());
  StepOptions options;
  options.members.resize(2);
  const auto make = [&] { whole_session(make_network("wrn10_1", {4, 3, 32, 32}, 10), options, *ranks); };
  if (ranks->size() == 1)
    EXPECT_NO_THROW(make());
  else
    EXPECT_THROW(make(), std::invalid_argument);
}

}  // namespace
}  // namespace convoy::app

#include "comm/launcher.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

namespace convoy::comm {
namespace {

TEST(Launcher, ReadsTheWorldSizeOfEachLauncher) {
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "3", 1);
  auto hint = launcher_hint();
  ASSERT_TRUE(hint);
  EXPECT_EQ(hint->world_size, 4);
  EXPECT_EQ(hint->local_rank, 3);
  setenv("OMPI_COMM_WORLD_SIZE", "many", 1);
  EXPECT_THROW(launcher_hint(), std::runtime_error);
  unsetenv("OMPI_COMM_WORLD_SIZE");
  unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
}

}  // namespace
}  // namespace convoy::comm

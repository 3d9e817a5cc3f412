#include "comm/launcher.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

namespace convoy::comm {
namespace {

TEST(Launcher, ReadsTheWorldSizeOfEachLauncher) {
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  setenv("OMPI_COMM_WORLD_RANK", "2", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "3", 1);
  auto hint = launcher_hint();
  ASSERT_TRUE(hint);
  EXPECT_EQ(hint->world_size, 4);
  EXPECT_EQ(hint->rank, 2);
  EXPECT_EQ(hint->local_rank, 3);
  setenv("OMPI_COMM_WORLD_SIZE", "many", 1);
  EXPECT_THROW(launcher_hint(), std::runtime_error);
  unsetenv("OMPI_COMM_WORLD_SIZE");
  unsetenv("OMPI_COMM_WORLD_RANK");
  unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
}

TEST(Launcher, KnowsWhenThereIsNone) {
  EXPECT_FALSE(launcher_hint());
  testing::internal::CaptureStderr();
  print_once_before_mpi("unknown flag --modle");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "convoy: unknown flag --modle\n");
}

}  // namespace
}  // namespace convoy::comm

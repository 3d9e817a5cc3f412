#include "comm/placement/launcher.h"

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

// Launchers that set PMI_SIZE give the local rank in one of these variables. If one were ignored,
// every rank of a host would use the first GPU.
TEST(Launcher, FindsTheLocalRankUnderWhateverName) {
  setenv("PMI_SIZE", "8", 1);
  setenv("PMI_RANK", "6", 1);
  ASSERT_TRUE(launcher_hint());
  EXPECT_FALSE(launcher_hint()->local_rank);
  for (const char* variable : {"SLURM_LOCALID", "PALS_LOCAL_RANKID", "PMI_LOCAL_RANK", "MPI_LOCALRANKID"}) {
    setenv(variable, "2", 1);
    EXPECT_EQ(launcher_hint()->rank, 6);
    EXPECT_EQ(launcher_hint()->local_rank, 2) << variable;
    unsetenv(variable);
  }
  unsetenv("PMI_SIZE");
  unsetenv("PMI_RANK");
  setenv("MV2_COMM_WORLD_SIZE", "4", 1);
  setenv("MV2_COMM_WORLD_LOCAL_RANK", "1", 1);
  EXPECT_EQ(launcher_hint()->local_rank, 1);
  unsetenv("MV2_COMM_WORLD_SIZE");
  unsetenv("MV2_COMM_WORLD_LOCAL_RANK");
}

TEST(Launcher, KnowsWhenThereIsNone) {
  EXPECT_FALSE(launcher_hint());
  testing::internal::CaptureStderr();
  print_once_before_mpi("unknown flag --modle");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "convoy: unknown flag --modle\n");
}

}  // namespace
}  // namespace convoy::comm

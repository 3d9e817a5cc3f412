// Fails on one rank only. tests/CMakeLists.txt checks the message and the status of the program.
#include <gtest/gtest.h>

#include "tests/mpi/world.h"

TEST(AFailure, OfOneRank) { EXPECT_EQ(convoy::test::world().rank(), 0); }

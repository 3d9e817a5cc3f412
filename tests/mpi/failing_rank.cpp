// Fails on one rank alone: what main.cpp makes of that is what is tested.
#include <gtest/gtest.h>

#include "tests/mpi/world.h"

TEST(AFailure, OfOneRank) { EXPECT_EQ(convoy::test::world().rank(), 0); }

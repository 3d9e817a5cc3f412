// Tests where the parts of several sessions' memory are placed.
#include "app/sharing/memory_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace convoy::app {
namespace {

constexpr std::int64_t kPage = kMapAlignment;
constexpr int kState = static_cast<int>(MemoryPart::state), kScratch = static_cast<int>(MemoryPart::scratch);

MappedJob job(const std::string& name, std::int64_t inputs, std::int64_t state, std::int64_t scratch,
              bool stays = false) {
  MappedJob made;
  made.name = name;
  made.stays = stays;
  made.need = {{inputs * kPage, state * kPage, scratch * kPage}};
  return made;
}

bool overlap(const MappedJob& a, int of_a, const MappedJob& b, int of_b) {
  return a.offset[of_a] < b.offset[of_b] + b.need.bytes[of_b] &&
         b.offset[of_b] < a.offset[of_a] + a.need.bytes[of_a];
}

TEST(MemoryMap, NothingOverlapsWhereThereIsRoom) {
  std::vector<MappedJob> jobs{job("a", 1, 2, 5), job("b", 1, 3, 4), job("c", 0, 1, 3)};
  place_jobs(bytes_side_by_side(jobs), jobs);
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < a; ++b) EXPECT_FALSE(share_memory(jobs[a], jobs[b])) << a << " " << b;
}

TEST(MemoryMap, ScratchOverlapsBeforeStates) {
  std::vector<MappedJob> jobs{job("a", 1, 2, 6), job("b", 1, 3, 5), job("c", 1, 2, 4)};
  place_jobs((3 + 7 + 6) * kPage, jobs);
  EXPECT_TRUE(share_memory(jobs[0], jobs[1]));
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) EXPECT_TRUE(a == b || !overwrites_state(jobs[a], jobs[b])) << a << " " << b;
}

// Four states of 4 pages and scratch memory of 2 pages do not fit into 14 pages. The state of the
// next job is copied in while the current job runs, so the states of two successive jobs must not
// overlap.
TEST(MemoryMap, StatesThatFollowEachOtherStayApart) {
  std::vector<MappedJob> jobs;
  for (const char* name : {"a", "b", "c", "d"}) jobs.push_back(job(name, 0, 4, 2));
  place_jobs(14 * kPage, jobs);
  for (int a = 0; a < 4; ++a) EXPECT_FALSE(overwrites_state(jobs[a], jobs[(a + 1) % 4])) << a;
}

TEST(MemoryMap, AJobThatStaysSharesNothing) {
  std::vector<MappedJob> jobs{job("a", 0, 3, 8), job("service", 1, 2, 3, true), job("b", 0, 3, 8)};
  place_jobs(20 * kPage, jobs);
  EXPECT_FALSE(share_memory(jobs[1], jobs[0]));
  EXPECT_FALSE(share_memory(jobs[1], jobs[2]));
}

TEST(MemoryMap, AMemoryOfAnyNumberOfBytesKeepsTheAlignment) {
  std::vector<MappedJob> jobs{job("a", 1, 2, 6), job("b", 1, 3, 5)};
  place_jobs(14 * kPage + 13, jobs);
  ASSERT_TRUE(share_memory(jobs[0], jobs[1])) << "only shared memory is placed from the end";
  for (const MappedJob& one : jobs)
    for (const std::int64_t offset : one.offset) EXPECT_EQ(offset % kPage, 0) << one.name;
}

TEST(MemoryMap, NamesTheJobThatDoesNotFit) {
  std::vector<MappedJob> jobs{job("small", 1, 1, 1), job("large", 1, 8, 8)};
  try {
    place_jobs(12 * kPage, jobs);
    FAIL() << "16 pages fitted into 12";
  } catch (const DoesNotFit& error) {
    EXPECT_EQ(error.job, "large");
  }
}

TEST(MemoryMap, APlacedJobStaysWhereItIs) {
  std::vector<MappedJob> jobs{job("a", 1, 2, 5), job("b", 1, 2, 5)};
  place_jobs(12 * kPage, jobs);
  const std::vector<MappedJob> before = jobs;
  jobs.push_back(job("late", 1, 1, 4));
  place_jobs(12 * kPage, jobs);
  for (int a = 0; a < 2; ++a)
    for (int part = 0; part < kMemoryParts; ++part) EXPECT_EQ(jobs[a].offset[part], before[a].offset[part]);
  EXPECT_TRUE(jobs[2].placed);
}

// For random jobs and memory, the parts of a job must not overlap, nothing may overlap inputs, and
// all must lie within the memory. place_jobs() may refuse the jobs only if the inputs of all jobs
// and the other parts of the largest job do not fit together.
TEST(MemoryMap, RandomJobsKeepTheRules) {
  std::mt19937 random(7);
  const auto number = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  int placed = 0, shared = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<MappedJob> jobs;
    const int count = number(1, 6);
    std::int64_t inputs = 0, largest = 0;
    for (int i = 0; i < count; ++i) {
      jobs.push_back(job(std::string(1, char('a' + i)), number(0, 2), number(0, 6), number(0, 10)));
      inputs += jobs[i].need.bytes[0];
      largest = std::max(largest, jobs[i].need.bytes[kState] + jobs[i].need.bytes[kScratch]);
    }
    const std::int64_t capacity = number(4, 60) * kPage;
    try {
      place_jobs(capacity, jobs);
    } catch (const DoesNotFit&) {
      EXPECT_GT(inputs + largest, capacity) << "round " << round;
      continue;
    }
    ++placed;
    bool any = false;
    for (int a = 0; a < count; ++a)
      for (int part = 0; part < kMemoryParts; ++part) {
        EXPECT_GE(jobs[a].offset[part], 0);
        EXPECT_LE(jobs[a].offset[part] + jobs[a].need.bytes[part], capacity);
        for (int b = 0; b < count; ++b)
          for (int other = 0; other < kMemoryParts; ++other) {
            if (a == b && part == other) continue;
            const bool overlaps = overlap(jobs[a], part, jobs[b], other);
            any = any || overlaps;
            EXPECT_FALSE(overlaps && (a == b || part == 0 || other == 0)) << "round " << round;
          }
      }
    EXPECT_FALSE(any && bytes_side_by_side(jobs) <= capacity) << "round " << round;
    shared += any ? 1 : 0;
  }
  EXPECT_GT(placed, 1000);
  EXPECT_GT(shared, 300);
}

}  // namespace
}  // namespace convoy::app

#include "comm/placement/local_device.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "comm/placement/rank_placement.h"

namespace convoy::comm {
namespace {

TEST(LocalDevice, IsChosenByTheLocalRank) {
  EXPECT_EQ(choose_device(3, 8), 3);
  EXPECT_EQ(choose_device(0, 8), 0);
  EXPECT_EQ(choose_device(std::nullopt, 8), 0) << "no launcher: a single rank";
  EXPECT_EQ(choose_device(5, 1), 0) << "CUDA_VISIBLE_DEVICES shows each rank its own";
  EXPECT_THROW(choose_device(0, 0), std::runtime_error);
  try {
    choose_device(2, 2);
    FAIL() << "two GPUs for three ranks";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("local rank 2 on a host with 2 GPUs"), std::string::npos)
        << error.what();
  }
}

RankDevice use(const char* host, int index, const char* uuid) {
  return {host,
          {.index = index, .name = "NVIDIA H200", .uuid = uuid, .pci = "0000:1B:00.0", .near_cores = {}}};
}

TEST(LocalDevice, IsNeverSharedByTwoRanks) {
  EXPECT_EQ(shared_device_problem({}), "");
  EXPECT_EQ(shared_device_problem({use("a", 0, "GPU-1"), use("a", 1, "GPU-2"), use("b", 0, "GPU-3")}), "");
  // Two ranks of a host may see different GPUs as number 0. So equal indices do not mean one GPU.
  EXPECT_EQ(shared_device_problem({use("a", 0, "GPU-1"), use("a", 0, "GPU-2")}), "");
  EXPECT_EQ(shared_device_problem({use("a", 0, "GPU-1"), use("b", 0, "GPU-1")}), "")
      << "containers may copy ids";
  EXPECT_EQ(shared_device_problem({use("a", -1, ""), use("a", -1, "")}), "") << "ranks without a device";
  EXPECT_EQ(shared_device_problem({use("a", 0, "GPU-1"), use("a", 1, "GPU-2"), use("a", 5, "GPU-2")}),
            "ranks 1 and 2 are on one GPU of host a, cuda:1 NVIDIA H200 (GPU-2, PCI 0000:1B:00.0), expected "
            "one rank per GPU");
}

TEST(LocalDevice, NamesItself) {
  EXPECT_EQ(LocalDevice{}.to_string(), "cpu");
  EXPECT_EQ(LocalDevice{}.short_name(), "");
  EXPECT_EQ(use("a", 2, "GPU-1").device.to_string(), "cuda:2 NVIDIA H200");
  EXPECT_EQ(use("a", 2, "GPU-1").device.short_name(), "cuda:2");
}

TEST(CoreLists, AreReadAsTheKernelWritesThem) {
  EXPECT_EQ(parse_core_list(""), std::vector<int>{});
  EXPECT_EQ(parse_core_list("\n"), std::vector<int>{});
  EXPECT_EQ(parse_core_list("5\n"), std::vector<int>{5});
  EXPECT_EQ(parse_core_list("0-3,8,10-11\n"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(format_cores(parse_core_list("0-47,96-143")), "0-47,96-143");
  for (const char* wrong : {"a", "1-", "-1", "3-1", "1,,2", "1,2,", "1 2", "0-999999999", "0x3"})
    EXPECT_THROW(parse_core_list(wrong), std::runtime_error) << wrong;
}

TEST(CoreLists, OfAPciDevice) {
  const auto root = std::filesystem::temp_directory_path() / ("convoy-sysfs-" + std::to_string(::getpid()));
  const auto folder = root / "bus/pci/devices/0000:1b:00.0";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "local_cpulist") << "48-95\n";
  EXPECT_EQ(format_cores(cores_near("0000:1B:00.0", root.string())), "48-95") << "CUDA writes capitals";
  EXPECT_EQ(cores_near("0000:1c:00.0", root.string()), std::vector<int>{}) << "not there";
  std::ofstream(folder / "local_cpulist") << "nonsense\n";
  EXPECT_EQ(cores_near("0000:1b:00.0", root.string()), std::vector<int>{}) << "a hint, not a need";
  std::filesystem::remove_all(root);
}

TEST(CoreLists, NarrowWhatALauncherAllows) {
  // Neighbours in this list are neighbouring cores, so its order must be kept.
  const std::vector<int> allowed{0, 4, 1, 5, 2, 6};
  EXPECT_EQ(prefer_near(allowed, std::vector<int>{4, 5, 6, 7}), (std::vector<int>{4, 5, 6}));
  EXPECT_EQ(prefer_near(allowed, std::vector<int>{}), allowed);
  EXPECT_EQ(prefer_near(allowed, std::vector<int>{8, 9}), allowed) << "bound elsewhere by the launcher";
}

}  // namespace
}  // namespace convoy::comm

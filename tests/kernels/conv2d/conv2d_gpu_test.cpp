// Compares every plan (a kernel with its tile sizes) of every engine (a family of kernels,
// engines.h) with sums in double precision. The layers test the edges of tiles, channel blocks,
// images and TMA windows. Outputs and workspaces start as NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <string>
#include <tuple>

#include "kernels/conv2d/bench/measure.h"
#include "kernels/device/tuning.h"
#include "tests/brief.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {
namespace {

using conv::Direction;
using conv::Engine;
using conv::Task;
using gemm::Math;

struct Layer {
  Shape x;        // [N, C, H, W]
  Shape filters;  // [K, C / groups, R, S]
  Conv2dProblem problem = {};
};

Task task_of(const Layer& layer, Direction direction, Math math) {
  const Conv2dProblem& p = layer.problem;
  const Shape y = conv2d_output_shape(p, layer.x, layer.filters);
  Task task;
  task.direction = direction;
  task.math = math;
  task.geometry = {int(layer.x[0]),
                   int(layer.x[1]),
                   int(layer.x[2]),
                   int(layer.x[3]),
                   int(layer.filters[0]),
                   int(y[2]),
                   int(y[3]),
                   int(layer.filters[2]),
                   int(layer.filters[3]),
                   {p.stride[0], p.stride[1]},
                   {p.padding[0], p.padding[1]},
                   {p.dilation[0], p.dilation[1]},
                   p.groups};
  task.bias = p.bias && direction != Direction::backward_data;
  task.relu = p.relu && direction == Direction::forward;
  task.input_relu = p.input_relu && direction == Direction::backward_data;
  return task;
}

const Conv2dProblem kSame{.padding = {1, 1}}, kHalf{.stride = {2, 2}, .padding = {1, 1}};

std::vector<Layer> layers() {
  return {
      {{2, 64, 8, 8}, {64, 64, 3, 3}, kSame},
      {{3, 64, 14, 14}, {128, 64, 3, 3}, kSame},
      {{5, 128, 7, 7}, {256, 128, 3, 3}, kSame},
      {{2, 32, 13, 9}, {24, 32, 3, 3}, kSame},  // channels that do not fill a block
      // One whole block of channels, and a part of a second one.
      {{3, 72, 5, 6}, {40, 72, 3, 2}, {.padding = {2, 0}}},
      {{2, 64, 17, 15}, {64, 64, 3, 3}, kHalf},  // a stride of two, and odd extents
      {{2, 64, 16, 16}, {64, 64, 3, 3}, kHalf},  //
      // Some input pixels meet no tap, so their dx is zero.
      {{3, 64, 9, 8}, {128, 64, 1, 1}, {.stride = {2, 2}}},
      {{2, 64, 10, 10}, {32, 64, 2, 2}, {.stride = {3, 3}}},  //
      {{1, 40, 11, 12}, {56, 40, 5, 5}, {.stride = {2, 1}, .padding = {2, 2}}},
      {{2, 64, 12, 12}, {64, 64, 3, 3}, {.padding = {2, 2}, .dilation = {2, 2}}},
      {{2, 64, 9, 9}, {64, 64, 1, 1}, {.bias = true, .relu = true}},
      // Filters of one tap: a plain matrix product, and a product that skips pixels of x.
      {{2, 72, 9, 9}, {40, 72, 1, 1}},
      {{2, 72, 9, 8}, {40, 72, 1, 1}, {.stride = {2, 2}}},  //
      {{2, 64, 9, 9}, {72, 64, 3, 3}, {.padding = {1, 1}, .bias = true, .relu = true}},
      {{2, 3, 32, 32}, {64, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}}},
      {{2, 3, 33, 31}, {64, 3, 3, 3}, {.padding = {1, 1}, .bias = true}},
      {{1, 3, 67, 67}, {64, 3, 11, 11}, {.stride = {4, 4}, .padding = {2, 2}, .bias = true}},
      {{3, 1, 28, 28}, {32, 1, 5, 5}, {.padding = {2, 2}, .bias = true}},
      // These layers have so few channels that kernels turn neighbouring pixels into channels
      // (space_to_depth).
      {{1, 3, 9, 4000}, {64, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}}},
      {{1, 3, 9, 4003}, {64, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}}},
      {{2, 16, 16, 16}, {160, 16, 3, 3}, kSame},
      {{300, 64, 4, 4}, {64, 64, 3, 3}, kSame},  // many tiles per thread block
      // 160 channels fill two and a half blocks of 64. There are tiles of 160 columns for them.
      {{3, 160, 9, 11}, {160, 160, 3, 3}, {.padding = {1, 1}, .bias = true, .relu = true}},
      {{3, 160, 6, 7}, {344, 160, 3, 3}, kSame},
      {{400, 160, 8, 8}, {160, 160, 3, 3}, kSame},  // many tiles per thread block
      {{3, 344, 6, 7}, {176, 344, 1, 1}, {.stride = {2, 2}}},
      // In these layers the convolution reads the result of a ReLU, whose mask backward_data
      // applies: in whole tiles, in parts of tiles, with many tiles per thread block, and with sums
      // that are split over several thread blocks.
      {{3, 64, 14, 14}, {128, 64, 3, 3}, {.padding = {1, 1}, .input_relu = true}},
      {{2, 32, 13, 9}, {24, 32, 3, 3}, {.padding = {1, 1}, .input_relu = true}},
      {{300, 64, 4, 4}, {64, 64, 3, 3}, {.padding = {1, 1}, .input_relu = true}},
      {{1, 512, 5, 5}, {512, 512, 3, 3}, {.padding = {1, 1}, .input_relu = true}},
      {{2, 12, 7, 7}, {20, 12, 3, 3}, kSame},  // channel counts that are no multiple of eight
      {{2, 12, 7, 7}, {20, 12, 3, 3}, {.padding = {1, 1}, .input_relu = true}},
      {{2, 64, 7, 7}, {10, 64, 3, 3}, kSame},
      // In these layers, a tile may load a pixel once for all taps of a filter's row. Some image
      // rows are longer than a TMA box.
      {{2, 64, 5, 70}, {64, 64, 3, 3}, {.padding = {1, 1}, .bias = true, .relu = true}},
      {{9, 40, 7, 1}, {64, 40, 3, 3}, kSame},
      {{2, 64, 9, 11}, {24, 64, 5, 3}, {.padding = {4, 1}, .dilation = {2, 1}}},
      {{3, 72, 6, 5}, {64, 72, 3, 3}, {.padding = {0, 1}}},
      {{1, 16, 2, 300}, {64, 16, 1, 3}, {.padding = {0, 1}}},
      {{90, 64, 23, 23}, {64, 64, 3, 3}, {.padding = {1, 1}, .input_relu = true}},
      {{3, 64, 7, 67}, {72, 64, 3, 3}, {.padding = {1, 1}, .input_relu = true}},
      // In these layers, too, a tile may load a pixel once for all taps of a filter's row. Each
      // thread block computes two or three tiles.
      {{400, 8, 16, 16}, {8, 8, 3, 3}, kSame},
      {{400, 8, 16, 16}, {8, 8, 3, 3}, {.padding = {1, 1}, .input_relu = true}},
      {{400, 8, 16, 16}, {8, 8, 1, 3}, {.padding = {0, 1}}},
      {{400, 8, 16, 16}, {72, 8, 5, 3}, {.padding = {2, 1}}},
      {{130, 136, 14, 14}, {136, 136, 3, 3}, kSame},
      // In most of these layers, the last TMA box of a pixel holds at most 32 channels. If the rows
      // of a filter have five taps, a tile may load a pixel once for all five.
      {{2, 32, 16, 16}, {64, 32, 5, 5}, {.padding = {2, 2}, .bias = true, .relu = true}},
      {{300, 32, 8, 8}, {32, 32, 5, 5}, {.padding = {2, 2}, .input_relu = true}},
      {{150, 32, 16, 16}, {32, 32, 5, 5}, {.padding = {2, 2}}},
      {{300, 64, 7, 8}, {32, 64, 5, 5}, {.padding = {2, 2}, .input_relu = true}},
      {{2, 64, 9, 70}, {64, 64, 3, 5}, {.padding = {1, 2}}},
      {{5, 64, 9, 1}, {24, 64, 1, 5}, {.padding = {0, 2}}},
      {{3, 96, 9, 11}, {96, 96, 3, 3}, {.padding = {1, 1}, .bias = true}},
      {{40, 32, 30, 30}, {64, 32, 3, 3}, {.stride = {2, 2}}},
      {{40, 8, 30, 30}, {64, 8, 3, 3}, kSame},
      {{40, 32, 30, 30}, {96, 32, 1, 1}},
  };
}

// Convolutions with groups. A kernel computes several groups (a pack) in one tile. Some packs are
// half empty, wider than a tile, no divisor of a tile, or no multiple of a vector.
std::vector<Layer> layers_in_groups() {
  return {
      {{2, 64, 7, 7}, {64, 32, 3, 3}, {.padding = {1, 1}, .groups = 2}},
      {{3, 128, 14, 14}, {128, 4, 3, 3}, {.padding = {1, 1}, .groups = 32}},
      {{2, 96, 9, 7}, {96, 4, 3, 3}, {.padding = {1, 1}, .groups = 24, .bias = true, .relu = true}},
      {{2, 384, 7, 7}, {96, 16, 3, 3}, {.padding = {2, 2}, .dilation = {2, 2}, .groups = 24}},
      {{2, 96, 7, 7}, {384, 4, 3, 3}, {.padding = {1, 1}, .groups = 24}},
      {{1, 512, 6, 5}, {512, 256, 3, 3}, {.padding = {1, 1}, .groups = 2}},
      {{2, 192, 7, 7}, {192, 48, 3, 3}, {.padding = {1, 1}, .groups = 4}},
      {{2, 640, 5, 5}, {320, 40, 3, 3}, {.padding = {1, 1}, .groups = 16, .input_relu = true}},
      {{2, 96, 8, 8}, {48, 12, 3, 2}, {.padding = {1, 1}, .groups = 8, .bias = true}},
      {{2, 48, 7, 7}, {96, 6, 3, 3}, {.padding = {1, 1}, .groups = 8}},
      {{2, 48, 7, 7}, {48, 1, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 48}},
      {{2, 144, 9, 9}, {288, 1, 3, 3}, {.padding = {1, 1}, .groups = 144}},
      {{2, 128, 6, 6}, {256, 32, 1, 1}, {.groups = 4, .bias = true, .relu = true}},
      {{3, 256, 15, 14}, {256, 8, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 32}},
      {{200, 128, 8, 8}, {128, 4, 3, 3}, {.padding = {1, 1}, .groups = 32, .input_relu = true}},
      {{2, 60, 7, 7}, {60, 4, 3, 3}, {.padding = {1, 1}, .groups = 15}},
      {{2, 21, 7, 7}, {14, 3, 3, 3}, {.padding = {1, 1}, .groups = 7, .bias = true}},
      {{2, 131, 6, 6}, {131, 1, 3, 3}, {.padding = {1, 1}, .groups = 131}},
      // Depthwise layers with every filter size and stride, and with many tiles per thread block.
      // The kernels copy the channels 64, 16, 8 or 4 bytes at a time.
      {{40, 96, 30, 29}, {96, 1, 3, 3}, {.padding = {1, 1}, .groups = 96, .bias = true, .relu = true}},
      {{9, 58, 28, 28}, {58, 1, 3, 3}, {.padding = {1, 1}, .groups = 58, .input_relu = true}},
      {{20, 144, 31, 28}, {144, 1, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 144}},
      {{12, 36, 14, 14}, {36, 1, 5, 5}, {.padding = {2, 2}, .groups = 36, .bias = true}},
      {{12, 240, 15, 14}, {240, 1, 5, 5}, {.stride = {2, 2}, .padding = {2, 2}, .groups = 240}},
      {{30, 96, 28, 28}, {96, 1, 7, 7}, {.padding = {3, 3}, .groups = 96, .bias = true}},
      {{5, 64, 15, 15}, {64, 1, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}, .groups = 64}},
      {{7, 72, 17, 15}, {72, 1, 3, 3}, {.padding = {1, 1}, .groups = 72, .input_relu = true}},
      {{5, 48, 15, 14},
       {48, 1, 5, 5},
       {.stride = {2, 2}, .padding = {2, 2}, .groups = 48, .input_relu = true}},
      {{33, 104, 7, 7}, {104, 1, 5, 5}, {.padding = {2, 2}, .groups = 104}},
      // Many tiles per thread block, in numbers that are no multiple of the blocks.
      {{301, 96, 28, 28}, {96, 1, 3, 3}, {.padding = {1, 1}, .groups = 96}},
      {{203, 96, 28, 28}, {96, 1, 5, 5}, {.stride = {2, 2}, .padding = {2, 2}, .groups = 96}},
      {{205, 64, 14, 14}, {64, 1, 7, 7}, {.padding = {3, 3}, .groups = 64}},
  };
}

// 1x1 layers whose channels are no multiple of 16 bytes. The kernels treat two, four or eight
// neighbouring pixels as one (joined_pixels.h). Some rows of joined pixels fill a block only in
// part, or hold pixels of two image lines.
std::vector<Layer> layers_of_joined_pixels() {
  return {
      {{2, 58, 8, 8}, {58, 58, 1, 1}},
      {{3, 116, 6, 7}, {116, 116, 1, 1}},
      {{3, 24, 5, 4}, {58, 24, 1, 1}},
      {{2, 20, 2, 9}, {20, 20, 1, 1}},
      {{2, 58, 8, 8}, {64, 58, 1, 1}, {.bias = true}},
      {{2, 64, 8, 8}, {58, 64, 1, 1}, {.bias = true, .relu = true}},
      {{5, 3, 8, 6}, {21, 3, 1, 1}, {.bias = true, .relu = true}},
      {{3, 58, 6, 6}, {20, 58, 1, 1}, {.input_relu = true}},
      {{100, 58, 28, 28}, {58, 58, 1, 1}},
      {{100, 58, 28, 28}, {58, 58, 1, 1}, {.input_relu = true}},
      {{100, 58, 28, 28}, {116, 58, 1, 1}, {.bias = true, .relu = true}},
  };
}

constexpr Direction kDirections[] = {Direction::forward, Direction::backward_data,
                                     Direction::backward_weights};

// All directions in one test would take long under compute-sanitizer. So each direction is a test
// of its own, and the tests can run in parallel.
class Conv2dOnGpu : public ::testing::TestWithParam<std::tuple<Math, Direction>> {};

// Returns 0 if no tile can load a pixel once for all three taps of a filter's row. Otherwise
// returns the kind of layer, 1 to 5; a brief run tests one layer of each kind. In kind 5, a row of
// y has at least 64 pixels, the length of a TMA box.
int by_length(const Task& task) {
  const conv::Geometry& g = task.geometry;
  if (g.s != 3 || g.padding[1] != 1 || g.stride[1] != 1) return 0;
  return g.r != 3 ? 1 : g.padding[0] != 1 ? 2 : g.q == 1 ? 3 : g.q < 64 ? 4 : 5;
}

// Names the code path that a plan takes in its kernel. A brief run tests one plan for each name.
std::string kind_of(const Layer& layer, const Task& task, const conv::Plan& plan) {
  const auto &c = layer.x[1], &k = layer.filters[0];
  std::string kind = plan.to_string();
  kind.resize(std::min(kind.find(" split"), kind.size()));
  const auto add = [&](std::int64_t value) { kind += " " + std::to_string(value); };
  add(plan.product.splits > 1);
  if (task.input_relu) kind += " masked";
  if (plan.engine == Engine::depthwise) {
    add(task.geometry.r);
    add(task.geometry.stride[0]);
    add(std::gcd(c, 8));
  } else if (plan.product.rung == gemm::Rung::wgmma) {
    add(c % 64 != 0);
    add(k % 64 != 0);
    add(task.geometry.y_pixels() > 25'000);
    if (task.bias) kind += " bias";
    if (kind.find("t ") != std::string::npos) add(by_length(task));
  }
  if (plan.engine != Engine::depthwise) {
    add(std::gcd(c, 8));
    add(std::gcd(k, 8));
  }
  return kind;
}

// Checks that one launch for several networks ("members", kernel.h) gives the bits of one launch
// for each of them.
void expect_members(const Task& task, const conv::Plan& plan, Random& random) {
  const conv::Geometry& g = task.geometry;
  const bool weights = task.direction == Direction::backward_weights;
  std::vector<MemberPart> parts;
  const auto add = [&](const char* name, std::int64_t elements, DType type, bool drawn) -> MemberPart& {
    parts.push_back({name, {}});
    for (std::vector<std::byte>& bytes : parts.back().bytes) {
      bytes.assign(std::size_t(elements) * bytes_of(type), std::byte{0xff});
      if (!drawn) continue;
      const int width = int(bytes_of(type));
      for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        const std::uint32_t word = random.engine()() & 0x7f7f7f7fu;
        std::memcpy(bytes.data() + i, &word, sizeof word);
      }
      for (std::size_t i = std::size_t(width) - 1; i < bytes.size(); i += std::size_t(width))
        bytes[i] = random.coin() ? std::byte{0x3f} : std::byte{0xbf};
    }
    return parts.back();
  };
  const std::int64_t x = g.x_pixels() * g.c, y = g.y_pixels() * g.k,
                     filters = std::int64_t{g.k} * g.taps() * (g.c / g.groups);
  const DType type = task.type();
  add("the images", task.direction == Direction::backward_data ? y : x, type, true);
  add("the filters", filters, type, true);
  add("dy", y, type, true);
  add("x", x, type, true);
  add("the bias", g.k, DType::f32, true);
  add("the result",
      weights                                ? filters
      : task.direction == Direction::forward ? y
                                             : x,
      weights ? DType::f32 : type, false);
  add("the bias's gradient", g.k, DType::f32, false);
  MemberPart& control = add("the control", sizeof(StepControl), DType::u8, false);
  for (std::vector<std::byte>& bytes : control.bytes) {
    const StepControl all = all_valid(g.n);
    std::memcpy(bytes.data(), &all, sizeof all);
  }
  add("the workspace", std::int64_t(plan.workspace_bytes), DType::u8, false).compared = false;
  const auto bind = [&](const std::vector<void*>& at, const MemberLayout& members) {
    conv::Buffers buffers{.images = at[0], .weights = at[1], .dy = at[2], .out = at[5]};
    if (task.input_relu) buffers.x = at[3];
    if (task.bias && !weights) buffers.bias = static_cast<const float*>(at[4]);
    if (task.bias && weights) buffers.dbias = static_cast<float*>(at[6]);
    buffers.control = static_cast<const StepControl*>(at[7]);
    buffers.workspace = at[8];
    buffers.members = members;
    return conv::bind(task, plan, buffers);
  };
  EXPECT_EQ(compare_members(Backend::cuda, parts, bind), "") << plan.to_string();
}

void expect_right_plans(const std::vector<Layer>& layers, Math math, Direction direction) {
  if (!gemm::device_present()) GTEST_SKIP() << "no CUDA device";
  std::uint64_t seed = 1;
  Random random(7);
  std::set<std::string> seen, with_members;
  for (const Layer& layer : layers) {
    if (layer.problem.input_relu && direction != Direction::backward_data) continue;
    const Task task = task_of(layer, direction, math);
    SCOPED_TRACE(task.to_string() + (task.input_relu ? " input relu" : ""));
    conv::Bench bench(task);
    for (const Engine engine : conv::kEngines) {
      if (!conv::supports(engine, task)) continue;
      for (const conv::Plan& plan : conv::candidates(engine, task)) {
        if (task.input_relu && !plan.fuses_extra) continue;
        if (!seen.insert(kind_of(layer, task, plan)).second && convoy::test::brief()) continue;
        gemm::Check check;
        ASSERT_NO_THROW(check = bench.check(plan, seed++)) << plan.to_string();
        // A launch for several networks (members) differs only in addresses. So one check per
        // kernel is enough, and one more if its sums are split.
        std::string kernel = plan.to_string();
        kernel.resize(std::min(kernel.find(" split"), kernel.size()));
        if (plan.product.splits > 1) kernel += " split";
        if (task.input_relu) kernel += " masked";
        if (task.bias) kernel += " bias";
        if (with_members.insert(kernel).second) expect_members(task, plan, random);
        EXPECT_TRUE(check.correct) << plan.to_string() << ": relative error " << check.relative_error
                                   << ", worst element " << check.worst << " of its bound";
      }
    }
  }
}

TEST_P(Conv2dOnGpu, EveryPlanOfEveryEngineIsRight) {
  expect_right_plans(layers(), std::get<0>(GetParam()), std::get<1>(GetParam()));
}
TEST_P(Conv2dOnGpu, EveryPlanOfGroupsIsRight) {
  expect_right_plans(layers_in_groups(), std::get<0>(GetParam()), std::get<1>(GetParam()));
}

TEST_P(Conv2dOnGpu, EveryPlanOfJoinedPixelsIsRight) {
  expect_right_plans(layers_of_joined_pixels(), std::get<0>(GetParam()), std::get<1>(GetParam()));
}

// A launch for several networks (members) may take another tile than a launch for one, because
// tiles without split sums give the same bits (plan_for_members() in im2col_plan.cuh). Half of the
// inputs are zeros, whose products may be negative zeros.
TEST(Conv2dPlans, TilesOfOneBlockOfChannelsGiveTheSameBits) {
  if (!gemm::device_present()) GTEST_SKIP() << "no CUDA device";
  Random random(3);
  const auto drawn = [&](std::int64_t elements, bool zeros) {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(elements));
    for (std::uint16_t& value : values) {
      const std::uint32_t bits = random.engine()();
      value = static_cast<std::uint16_t>(zeros && (bits & 1) != 0 ? 0 : 0x3e00 | (bits >> 16 & 0x80ff));
    }
    auto on_device = allocate(Backend::cuda, values.size() * 2 + 1);
    copy_in(Backend::cuda, on_device.get(), reinterpret_cast<const std::byte*>(values.data()),
            values.size() * 2);
    return on_device;
  };
  const Conv2dProblem five{.padding = {2, 2}, .bias = true, .relu = true};
  const Layer layers[] = {{{9, 32, 16, 16}, {64, 32, 5, 5}, five},
                          {{9, 40, 13, 16}, {32, 40, 5, 5}, five},
                          {{9, 64, 8, 8}, {32, 64, 5, 5}, {.padding = {2, 2}, .input_relu = true}},
                          {{9, 64, 14, 14}, {8, 64, 3, 3}, {.padding = {1, 1}, .input_relu = true}},
                          {{9, 32, 14, 14}, {136, 32, 3, 3}, kSame}};
  int compared = 0;
  for (const Layer& layer : layers)
    for (const Direction direction : {Direction::forward, Direction::backward_data}) {
      const Task task = task_of(layer, direction, Math::bf16);
      if (!conv::supports(Engine::im2col, task)) continue;
      const bool back = direction == Direction::backward_data;
      const conv::Geometry& g = task.geometry;
      const std::int64_t x = g.x_pixels() * g.c, y = g.y_pixels() * g.k;
      const auto images = drawn(back ? y : x, true), mask = drawn(x, true),
                 filters = drawn(layer.filters.elements(), false), bias = drawn(2 * g.k, false);
      std::vector<std::byte> first;
      for (const conv::Plan& plan : conv::candidates(Engine::im2col, task)) {
        if (plan.product.splits > 1) continue;
        std::vector<std::byte> bytes(static_cast<std::size_t>(back ? x : y) * 2, std::byte{0xff});
        const auto out = allocate(Backend::cuda, bytes.size()),
                   workspace = allocate(Backend::cuda, plan.workspace_bytes + 1);
        copy_in(Backend::cuda, out.get(), bytes.data(), bytes.size());
        conv::Buffers buffers{.images = images.get(), .weights = filters.get(), .out = out.get()};
        if (task.bias) buffers.bias = reinterpret_cast<const float*>(bias.get());
        if (task.input_relu) buffers.x = mask.get();
        buffers.workspace = workspace.get();
        conv::bind(task, plan, buffers)({});
        copy_out(Backend::cuda, bytes.data(), out.get(), bytes.size());
        if (first.empty()) first = bytes;
        EXPECT_EQ(bytes, first) << task.to_string() << ", " << plan.to_string();
        ++compared;
      }
    }
  EXPECT_GE(compared, 40);
}

// A NaN must stay a NaN, so that a run that diverges shows it. A careless max(NaN, 0) would give 0.
TEST(Conv2dPlans, KeepNaN) {
  if (!gemm::device_present()) GTEST_SKIP() << "no CUDA device";
  const auto memory = [](std::size_t bytes, std::byte value) {
    const std::vector<std::byte> filled(bytes, value);
    auto on_device = allocate(Backend::cuda, bytes);
    copy_in(Backend::cuda, on_device.get(), filled.data(), bytes);
    return on_device;
  };
  constexpr std::byte kZero{0}, kNaN{0xff};  // 0 or NaN, in f32 and in bf16
  const Layer layers[] = {
      {{2, 64, 9, 9}, {72, 64, 3, 3}, {.padding = {1, 1}, .bias = true, .relu = true}},
      {{2, 512, 9, 9}, {72, 512, 1, 1}, {.bias = true, .relu = true}},
      // The kernel treats neighbouring pixels of this layer as one, with zeros between the weights.
      {{2, 58, 8, 8}, {58, 58, 1, 1}, {.bias = true, .relu = true}},
      {{2, 128, 9, 9}, {128, 4, 3, 3}, {.padding = {1, 1}, .groups = 32, .bias = true, .relu = true}},
      {{2, 64, 9, 9}, {64, 1, 3, 3}, {.padding = {1, 1}, .groups = 64, .bias = true, .relu = true}},
      {{2, 64, 9, 9}, {64, 1, 5, 5}, {.stride = {2, 2}, .padding = {2, 2}, .groups = 64, .bias = true}},
      {{2, 64, 9, 9}, {64, 1, 7, 7}, {.padding = {3, 3}, .groups = 64, .bias = true, .relu = true}}};
  for (const Layer& layer : layers)
    for (const Math math : {Math::bf16, Math::tf32, Math::fp32}) {
      const Task task = task_of(layer, Direction::forward, math);
      const std::size_t element = math == Math::bf16 ? 2 : 4;
      const auto filters = static_cast<std::size_t>(layer.filters[0]);
      const std::size_t outputs = static_cast<std::size_t>(task.geometry.y_pixels()) * filters;
      const std::size_t of_filter = static_cast<std::size_t>(layer.filters.elements()) / filters * element;
      const auto x = memory(static_cast<std::size_t>(layer.x.elements()) * element, kZero);
      const auto weights = memory(of_filter * filters, kZero), bias = memory(filters * 4, kZero);
      const std::vector<std::byte> nan(of_filter, kNaN);
      copy_in(Backend::cuda, weights.get() + 5 * of_filter, nan.data(), nan.size());
      for (const conv::Plan& plan : conv::candidates(task)) {
        const auto y = memory(outputs * element, kZero), workspace = memory(plan.workspace_bytes + 1, kZero);
        conv::Buffers buffers{.images = x.get(), .weights = weights.get(), .out = y.get()};
        buffers.bias = reinterpret_cast<const float*>(bias.get());
        buffers.workspace = workspace.get();
        conv::bind(task, plan, buffers)({});
        std::vector<std::byte> bytes(outputs * element);
        copy_out(Backend::cuda, bytes.data(), y.get(), bytes.size());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < outputs; ++i) {
          // The upper half of a float's bits is its bf16 value.
          std::uint16_t bits = 0;
          std::memcpy(&bits, &bytes[(i + 1) * element - 2], 2);
          if (((bits & 0x7fff) > 0x7f80) != (i % filters == 5)) ++wrong;
        }
        EXPECT_EQ(wrong, 0) << task.to_string() << ", " << plan.to_string();
      }
    }
}

// Convolutions of the zoo's networks must not use the gathered engine, which is slow.
class Conv2dOnHopper : public ::testing::TestWithParam<Math> {};

TEST_P(Conv2dOnHopper, TakesTheCopyEngine) {
  if (!gemm::device_present()) GTEST_SKIP() << "no CUDA device";
  const Layer inner{{2, 64, 8, 8}, {64, 64, 3, 3}, kHalf},
      groups{{2, 128, 8, 8}, {128, 4, 3, 3}, {.padding = {1, 1}, .groups = 32}},
      stem{{2, 3, 32, 32}, {64, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}}};
  for (const Direction direction : kDirections)
    for (const bool relu : {false, true})
      for (Layer layer : {inner, groups}) {
        layer.problem.input_relu = relu;
        EXPECT_EQ(conv::candidates(task_of(layer, direction, GetParam())).front().engine, Engine::im2col);
      }
  for (const Direction direction : {Direction::forward, Direction::backward_weights})
    EXPECT_EQ(conv::candidates(task_of(stem, direction, GetParam())).front().engine, Engine::folded);
}

// With 58, 116 or 20 channels, the channels of a pixel do not fill whole vectors. A plan can treat
// neighbouring pixels as one pixel with more channels, and pads the weights with zeros. It must be
// the first candidate if it makes a copy to aligned rows unnecessary. There must be no such plan if
// an image has an odd number of pixels, or if multiplying by the zeros costs more than the copy.
TEST_P(Conv2dOnHopper, JoinsPixelsThatFillNoVectors) {
  if (!gemm::device_present()) GTEST_SKIP() << "no CUDA device";
  for (const Direction direction : kDirections)
    for (const std::int64_t channels : {58, 116, 20}) {
      Task task = task_of({{256, channels, 28, 28}, {58, channels, 1, 1}}, direction, GetParam());
      task.statistics = direction == Direction::forward;
      if (!conv::supports(Engine::im2col, task_of({{2, 64, 8, 8}, {64, 64, 1, 1}}, direction, GetParam())))
        GTEST_SKIP() << "no Hopper";
      const conv::Plan best = conv::candidates(task).front();
      EXPECT_EQ(best.engine, Engine::im2col) << task.to_string();
      EXPECT_EQ(best.fuses_extra, task.statistics) << task.to_string();
      for (const Layer& layer :
           {Layer{{256, 58, 27, 27}, {channels, 58, 1, 1}}, Layer{{64, 2002, 28, 28}, {2002, 2002, 1, 1}}}) {
        const Task apart = task_of(layer, direction, GetParam());
        EXPECT_FALSE(conv::supports(Engine::im2col, apart)) << apart.to_string();
        EXPECT_EQ(conv::candidates(apart).front().engine, Engine::matrix) << apart.to_string();
      }
    }
}

// A 3x3 layer of 64 filters is limited by its loads. So the first candidate must have a tile that
// loads a pixel once for all taps of a filter's row ("t" in its name).
TEST(Conv2dPlans, TapsOfSixtyFourFiltersShareTheirPixels) {
  if (!gemm::device_present()) GTEST_SKIP() << "no CUDA device";
  const Layer layer{{128, 64, 56, 56}, {64, 64, 3, 3}, kSame};
  const std::tuple<Direction, const char*> expected[] = {{Direction::forward, " 256x64t"},
                                                         {Direction::backward_data, " 256x64t"},
                                                         {Direction::backward_weights, " 64x192t"}};
  for (const auto& [direction, tile] : expected) {
    const Task task = task_of(layer, direction, Math::bf16);
    if (!conv::supports(Engine::im2col, task)) GTEST_SKIP() << "no Hopper";
    const std::string plan = conv::candidates(task).front().to_string();
    EXPECT_NE(plan.find(tile), std::string::npos) << plan;
  }
}

// Gives the tests a tuning file that holds the plan measured for a task.
class Conv2dChoice : public ::testing::Test {
 protected:
  const std::filesystem::path file_ = std::filesystem::temp_directory_path() / "convoy_conv2d_tuning.json";
  std::string text_;

  void SetUp() override {
    if (!gemm::device_present()) GTEST_SKIP() << "no CUDA device";
  }
  void TearDown() override {
    tuning::stop();
    std::filesystem::remove(file_);
  }
  std::string measure(const Task& task) {
    std::filesystem::remove(file_);
    tuning::use(file_, tuning::Mode::measure);
    const std::string measured = conv::chosen(task).to_string();
    tuning::save();
    std::ifstream in(file_);
    text_.assign(std::istreambuf_iterator<char>(in), {});
    return measured;
  }
  // Replaces a name in the tuning file, and makes the library read the file again.
  void replace(const std::string& name, const std::string& by) {
    ASSERT_NE(text_.find(name), std::string::npos) << text_;
    text_.replace(text_.find(name), name.size(), by);
    std::ofstream(file_) << text_;
    tuning::use(file_, tuning::Mode::read);
  }
};

// A run with the tuning file of another run must use the plans in this file, even if it measures
// other plans as faster.
TEST_F(Conv2dChoice, IsKeptInTheTuningFile) {
  const Task task = task_of({{8, 64, 28, 28}, {64, 64, 3, 3}, kSame}, Direction::forward, Math::bf16);
  // This plan is not expected to be the fastest, so it can only come from the file.
  const std::string other = conv::candidates(task).back().to_string();
  replace(measure(task), other);
  EXPECT_EQ(conv::chosen(task).to_string(), other);
  // A name that no candidate has, for example from an older version, must be ignored.
  replace(other, "im2col gone");
  EXPECT_EQ(conv::chosen(task).to_string(), conv::candidates(task).front().to_string());
}

// An old tuning file may name a plan that needs a separate pass over the result. Newer plans
// without this pass must win.
TEST_F(Conv2dChoice, OfAnOldFileDoesNotBringBackAPass) {
  Task task = task_of({{8, 64, 28, 28}, {64, 64, 1, 1}, {}}, Direction::forward, Math::tf32);
  task.statistics = true;
  const std::vector<conv::Plan> plans = conv::candidates(task);
  if (!plans.front().fuses_extra) GTEST_SKIP() << "no Hopper: there are no such plans";
  const auto old = std::ranges::find(plans, Engine::matrix, &conv::Plan::engine);
  ASSERT_NE(old, plans.end());
  replace(measure(task), old->to_string());
  EXPECT_TRUE(conv::chosen(task).fuses_extra);
}

INSTANTIATE_TEST_SUITE_P(Every, Conv2dOnGpu,
                         ::testing::Combine(::testing::Values(Math::bf16, Math::tf32, Math::fp32),
                                            ::testing::ValuesIn(kDirections)),
                         [](const auto& info) {
                           return std::string(gemm::name_of(std::get<0>(info.param))) + "_" +
                                  conv::name_of(std::get<1>(info.param));
                         });
INSTANTIATE_TEST_SUITE_P(Maths, Conv2dOnHopper, ::testing::Values(Math::bf16, Math::tf32),
                         [](const auto& info) { return gemm::name_of(info.param); });

}  // namespace
}  // namespace convoy::kernels::testing

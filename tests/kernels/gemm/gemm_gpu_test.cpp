// Compares every rung (a kernel family of the GEMM) with double precision on the host. Tests plain
// and transposed operands, odd extents, row pitches too odd for 16-byte copies, split k and all
// epilogues. Nothing may be written outside C.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "kernels/device/cuda_runtime.h"
#include "kernels/device/tuning.h"
#include "kernels/gemm/bench/measure.h"
#include "kernels/gemm/gemm.h"
#include "tests/brief.h"
#include "tests/kernels/harness.h"

namespace convoy::kernels::gemm {
namespace {

constexpr float kCanary = 12288.0f;  // written around C; exact in bf16, and never a result here

float through_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}

// A matrix on the host and its copy on the device. Rows begin `pitch` elements apart. The gap after
// each row, and 64 elements after the last row, hold kCanary, so that a write there is found.
class Matrix {
 public:
  Matrix(DType type, std::int64_t rows, std::int64_t columns, std::int64_t pitch)
      : type_(type), columns_(columns), pitch_(pitch), values_(std::size_t(rows * pitch + 64), kCanary) {}

  float& at(std::int64_t row, std::int64_t column) { return values_[std::size_t(row * pitch_ + column)]; }
  float at(std::int64_t row, std::int64_t column) const {
    return values_[std::size_t(row * pitch_ + column)];
  }
  void randomize(std::mt19937& random, std::int64_t rows) {
    std::uniform_real_distribution<float> draw(-1, 1);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns_; ++column)
        at(row, column) = type_ == DType::bf16 ? through_bf16(draw(random)) : draw(random);
  }
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> bytes(values_.size() * bytes_of(type_));
    TensorDesc desc{type_, Shape{std::int64_t(values_.size())}, Layout::row_major, nullptr};
    from_row_major(desc, values_.data(), bytes.data());
    return bytes;
  }
  void to_device() {
    const std::vector<std::byte> bytes = this->bytes();
    buffer_ = DeviceBuffer(bytes.size());
    CONVOY_CUDA(cudaMemcpy(buffer_.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
  }
  std::vector<float> from_device() const {
    std::vector<std::byte> bytes(buffer_.bytes());
    CONVOY_CUDA(cudaMemcpy(bytes.data(), buffer_.data(), bytes.size(), cudaMemcpyDeviceToHost));
    std::vector<float> found(values_.size());
    TensorDesc desc{type_, Shape{std::int64_t(values_.size())}, Layout::row_major, nullptr};
    to_row_major(desc, bytes.data(), found.data());
    return found;
  }
  void* data() const { return buffer_.data(); }
  std::int64_t pitch() const { return pitch_; }

 private:
  DType type_;
  std::int64_t columns_, pitch_;
  std::vector<float> values_;
  DeviceBuffer buffer_;
};

// A problem with its operands on the host and the device, and the expected result.
class Case {
 public:
  Case(Problem problem, unsigned seed)
      : problem_(problem.checked()),
        input_(problem.math == Math::bf16 ? DType::bf16 : DType::f32),
        a_(input_, rows_a(), problem_.transpose_a ? problem_.m : problem_.k, problem_.lda),
        b_(input_, rows_b(), problem_.transpose_b ? problem_.k : problem_.n, problem_.ldb),
        c_(problem_.output, problem_.m, problem_.n, problem_.ldc) {
    std::mt19937 random(seed);
    a_.randomize(random, rows_a());
    b_.randomize(random, rows_b());
    if (problem_.beta != 0)
      c_.randomize(random, problem_.m);
    else
      for (std::int64_t row = 0; row < problem_.m; ++row)
        for (std::int64_t column = 0; column < problem_.n; ++column) c_.at(row, column) = NAN;
    std::uniform_real_distribution<float> draw(-1, 1);
    for (std::int64_t i = 0; i < problem_.n; ++i) bias_.push_back(draw(random));
    a_.to_device();
    b_.to_device();
    compute();
  }

  void expect_right(const Plan& plan) {
    SCOPED_TRACE(problem_.to_string() + ": " + plan.to_string());
    const auto found = run(plan);
    const double unit = std::ldexp(1.0, -24);
    const double products = unit * (8 + 2 * std::sqrt(double(problem_.k))) +
                            (problem_.math == Math::tf32 ? std::ldexp(1.0, -9) : 0);
    const double result = problem_.output == DType::bf16 ? std::ldexp(1.0, -8) : 2 * unit;
    int wrong = 0;
    for (std::int64_t row = 0; row < problem_.m; ++row)
      for (std::int64_t column = 0; column < problem_.n; ++column) {
        const std::size_t i = std::size_t(row * problem_.n + column);
        const float value = found[std::size_t(row * problem_.ldc + column)];
        const double bound = products * magnitude_[i] + result * std::abs(expected_[i]) + 1e-6 * unit;
        if (!(std::abs(value - expected_[i]) <= bound) && ++wrong <= 3)
          ADD_FAILURE() << "C[" << row << ", " << column << "] is " << value << ", expected " << expected_[i];
      }
    EXPECT_EQ(wrong, 0);
    expect_canaries(found);
    if (problem_.column_sums) expect_sums(found);
    EXPECT_EQ(std::memcmp(run(plan).data(), found.data(), found.size() * sizeof(float)), 0)
        << "a second run gave other bits";
    if (takes_members(plan)) expect_members(plan);
  }

 private:
  // Checks that one launch for several networks ("members", kernel.h) gives the bits of one launch
  // for each. Every member has this case's operands, rotated by another offset.
  void expect_members(const Plan& plan) const {
    const auto part = [](const char* name, const std::vector<std::byte>& bytes) {
      testing::MemberPart made{name, {}};
      for (std::size_t member = 0; member < made.bytes.size(); ++member) {
        made.bytes[member] = bytes;
        std::rotate(made.bytes[member].begin(),
                    made.bytes[member].begin() + std::ptrdiff_t(16 * member % bytes.size() / 4 * 4),
                    made.bytes[member].end());
      }
      return made;
    };
    const auto filled = [](std::size_t bytes) { return std::vector<std::byte>(bytes, std::byte{0xff}); };
    std::vector<std::byte> bias(bias_.size() * sizeof(float));
    std::memcpy(bias.data(), bias_.data(), bias.size());
    std::vector<testing::MemberPart> parts{part("A", a_.bytes()), part("B", b_.bytes()),
                                           part("C", c_.bytes()), part("the bias", bias),
                                           part("the column sums", filled(bias_.size() * 16))};
    parts.push_back({"the workspace", {}, false});
    for (std::vector<std::byte>& bytes : parts.back().bytes) bytes = filled(plan.workspace_bytes);
    const auto bind_members = [&](const std::vector<void*>& at, const MemberLayout& members) {
      return bind(problem_, plan,
                  {at[0], at[1], at[2], static_cast<const float*>(at[3]), static_cast<double*>(at[4]), at[5],
                   members});
    };
    EXPECT_EQ(testing::compare_members(Backend::cuda, parts, bind_members), "");
  }

  std::int64_t rows_a() const { return problem_.transpose_a ? problem_.k : problem_.m; }
  std::int64_t rows_b() const { return problem_.transpose_b ? problem_.n : problem_.k; }

  void compute() {
    for (std::int64_t row = 0; row < problem_.m; ++row)
      for (std::int64_t column = 0; column < problem_.n; ++column) {
        double sum = 0, magnitude = 0;
        for (std::int64_t k = 0; k < problem_.k; ++k) {
          const double product = double(problem_.transpose_a ? a_.at(k, row) : a_.at(row, k)) *
                                 double(problem_.transpose_b ? b_.at(column, k) : b_.at(k, column));
          sum += product;
          magnitude += std::abs(product);
        }
        sum *= problem_.alpha;
        if (problem_.beta != 0) sum += double(problem_.beta) * c_.at(row, column);
        if (problem_.bias) sum += bias_[std::size_t(column)];
        if (problem_.relu) sum = std::max(sum, 0.0);
        expected_.push_back(sum);
        magnitude_.push_back(magnitude * std::abs(problem_.alpha) + 1);
      }
  }

  std::vector<float> run(const Plan& plan) {
    c_.to_device();
    DeviceBuffer workspace(plan.workspace_bytes), bias(bias_.size() * sizeof(float));
    // Fill with NaN, so that an element that a kernel forgets to write cannot look right by chance.
    if (workspace.bytes() > 0) CONVOY_CUDA(cudaMemset(workspace.data(), 0xff, workspace.bytes()));
    CONVOY_CUDA(cudaMemcpy(bias.data(), bias_.data(), bias.bytes(), cudaMemcpyHostToDevice));
    DeviceBuffer sums(bias_.size() * 2 * sizeof(double));
    const CudaStream stream;
    bind(problem_, plan,
         {a_.data(), b_.data(), c_.data(), reinterpret_cast<const float*>(bias.data()),
          reinterpret_cast<double*>(sums.data()), workspace.data()})(stream.view());
    stream.synchronize();
    sums_.resize(bias_.size() * 2);
    CONVOY_CUDA(cudaMemcpy(sums_.data(), sums.data(), sums.bytes(), cudaMemcpyDeviceToHost));
    return c_.from_device();
  }

  void expect_canaries(const std::vector<float>& found) const {
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto row = std::int64_t(i) / problem_.ldc, column = std::int64_t(i) % problem_.ldc;
      if (row < problem_.m && column < problem_.n) continue;
      ASSERT_EQ(found[i], kCanary) << "written outside C, at row " << row << ", column " << column;
    }
  }

  // Compares the column sums with those of C as it is stored, to exclude the rounding of C.
  void expect_sums(const std::vector<float>& found) const {
    for (std::int64_t column = 0; column < problem_.n; ++column) {
      double sum = 0, square = 0, magnitude = 1e-9;
      for (std::int64_t row = 0; row < problem_.m; ++row) {
        const double value = found[std::size_t(row * problem_.ldc + column)];
        sum += value;
        square += value * value;
        magnitude += std::abs(value);
      }
      EXPECT_NEAR(sums_[std::size_t(column)], sum, 1e-5 * magnitude) << "sum of column " << column;
      EXPECT_NEAR(sums_[std::size_t(problem_.n + column)], square, 1e-5 * square + 1e-9)
          << "squares of column " << column;
    }
  }

  Problem problem_;
  DType input_;
  Matrix a_, b_, c_;
  std::vector<float> bias_;
  std::vector<double> expected_, magnitude_, sums_;
};

class GemmOnGpu : public ::testing::TestWithParam<Rung> {
 protected:
  void SetUp() override {
    if (!device_present()) GTEST_SKIP() << "no CUDA device";
  }
  // In a brief run, shrinks problems for the simple rungs, which are slow on large problems.
  static Problem sized(Problem problem) {
    if (!convoy::test::brief() || GetParam() > Rung::shared_tiles) return problem;
    problem.m = std::min<std::int64_t>(problem.m, 37);
    problem.n = std::min<std::int64_t>(problem.n, 40);
    problem.k = std::min<std::int64_t>(problem.k, 77);
    return problem;
  }
  // Checks every plan of the rung, if the rung supports the problem.
  void check(const Problem& wanted, unsigned seed) {
    const Problem problem = sized(wanted);
    if (!supports(GetParam(), problem)) return;
    Case one(problem, seed);
    std::set<std::pair<int, bool>> seen;
    for (const Plan& plan : candidates(GetParam(), problem))
      if (seen.insert({plan.tile, plan.splits > 1}).second || !convoy::test::brief()) one.expect_right(plan);
  }
};

Problem problem_of(Math math, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
                   std::int64_t k) {
  Problem problem;
  problem.math = math;
  problem.transpose_a = transpose_a;
  problem.transpose_b = transpose_b;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  return problem;
}
constexpr Math kMaths[] = {Math::fp32, Math::tf32, Math::bf16};

TEST_P(GemmOnGpu, EveryPlanIsRightInEveryOrder) {
  unsigned seed = 1;
  for (const Math math : kMaths)
    for (const int order : {0, 1, 2, 3})
      for (const auto& [m, n, k] : {std::array{264, 200, 136}, {1, 1, 1}, {67, 131, 77}, {130, 8, 1000}})
        for (const DType output : {DType::f32, DType::bf16}) {
          Problem problem = problem_of(math, order & 1, order & 2, m, n, k);
          problem.output = output;
          check(problem, seed++);
        }
}

// With many more tiles than multiprocessors, each block computes several tiles.
TEST_P(GemmOnGpu, ManyTilesABlock) {
  for (const Math math : kMaths) {
    Problem problem = problem_of(math, false, true, 9000, 520, 72);
    problem.output = DType::bf16;
    problem.column_sums = true;
    check(problem, 31);
    check(problem_of(math, true, false, 4100, 1030, 40), 32);
  }
}

// Launches on several streams delay each other's blocks. Each launch must give the same bits.
TEST_P(GemmOnGpu, SameBitsNextToOtherKernels) {
  Problem problem = sized(problem_of(Math::bf16, false, true, 9000, 520, 264));
  if (!supports(GetParam(), problem)) problem.math = Math::fp32;
  problem.output = DType::bf16;
  const std::size_t c_bytes = std::size_t(problem.m * problem.n) * 2;
  const DeviceBuffer a(9000 * 264 * 4), b(520 * 264 * 4);
  // These bytes are a small number, in f32 and in bf16.
  CONVOY_CUDA(cudaMemset(a.data(), 0x3c, a.bytes()));
  CONVOY_CUDA(cudaMemset(b.data(), 0x3d, b.bytes()));
  // The streams below do not wait for the null stream, on which cudaMemset runs.
  CONVOY_CUDA(cudaDeviceSynchronize());
  struct Lane {
    CudaStream stream;
    DeviceBuffer c, workspace;
    Launch launch;
  };
  std::set<int> seen;
  for (const Plan& plan : candidates(GetParam(), problem)) {
    if (!seen.insert(plan.tile).second && convoy::test::brief()) continue;
    SCOPED_TRACE(plan.to_string());
    std::vector<Lane> lanes(3);
    for (Lane& lane : lanes) {
      lane.c = DeviceBuffer(c_bytes), lane.workspace = DeviceBuffer(plan.workspace_bytes);
      lane.launch =
          bind(problem, plan, {a.data(), b.data(), lane.c.data(), nullptr, nullptr, lane.workspace.data()});
    }
    std::vector<std::vector<std::byte>> found(1 + lanes.size(), std::vector<std::byte>(c_bytes));
    const auto read = [&](std::size_t i, const DeviceBuffer& c) {
      CONVOY_CUDA(cudaMemcpy(found[i].data(), c.data(), c_bytes, cudaMemcpyDeviceToHost));
    };
    CONVOY_CUDA(cudaMemsetAsync(lanes[0].c.data(), 0xff, c_bytes, lanes[0].stream.get()));
    lanes[0].launch(lanes[0].stream.view());
    CONVOY_CUDA(cudaDeviceSynchronize());
    read(0, lanes[0].c);
    for (int round = 0; round < (convoy::test::brief() ? 1 : 4); ++round)
      for (const Lane& lane : lanes) {
        CONVOY_CUDA(cudaMemsetAsync(lane.c.data(), 0xff, c_bytes, lane.stream.get()));
        lane.launch(lane.stream.view());
      }
    CONVOY_CUDA(cudaDeviceSynchronize());
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      read(i + 1, lanes[i].c);
      EXPECT_EQ(std::memcmp(found[i + 1].data(), found[0].data(), c_bytes), 0) << "lane " << i;
    }
  }
}

TEST_P(GemmOnGpu, RowsWithGaps) {
  for (const Math math : kMaths)
    for (const int gap : {3, 8}) {
      Problem problem = problem_of(math, gap == 3, gap == 8, 100, 72, 90);
      problem.lda = (problem.transpose_a ? problem.m : problem.k) + gap;
      problem.ldb = (problem.transpose_b ? problem.k : problem.n) + gap;
      problem.ldc = problem.n + gap;
      check(problem, 41);
    }
}

TEST_P(GemmOnGpu, Epilogues) {
  for (const Math math : kMaths)
    for (const DType output : {DType::f32, DType::bf16})
      for (const auto& [m, n] : {std::array{200, 136}, {300, 70}}) {
        Problem problem = problem_of(math, false, true, m, n, 300);
        problem.output = output;
        problem.alpha = 0.5f;
        problem.column_sums = true;
        check(problem, 51);
        problem.beta = -1.5f;
        check(problem, 52);
        problem.bias = problem.relu = true;
        check(problem, 53);
        // Now the last tile has rows beyond C, to which the kernel adds the bias. They must not
        // count in the sums.
        problem.m += 1, problem.beta = 0;
        check(problem, 54);
      }
}

// Tests weight gradients, in which k is contiguous in neither operand: odd extents, unaligned rows,
// split k and every epilogue.
TEST_P(GemmOnGpu, NeitherKContiguous) {
  struct Sizes {
    std::int64_t m, n, k, lda, ldb;
  };
  unsigned seed = 71;
  for (const Math math : {Math::tf32, Math::bf16})
    for (const auto& [m, n, k, lda, ldb] : {Sizes{264, 200, 141, 264, 200},
                                            {129, 261, 100, 132, 264},
                                            {70, 131, 300, 71, 133},
                                            {67, 130, 90, 70, 130},
                                            {33, 7, 2004, 33, 7},
                                            {40, 67, 90, 41, 67},
                                            {300, 70, 2500, 300, 72}}) {
      Problem problem = problem_of(math, true, false, m, n, k);
      problem.lda = lda, problem.ldb = ldb;
      check(problem, seed++);
      problem.ldc = n + 3;
      problem.output = DType::bf16;
      problem.alpha = 0.5f;
      problem.column_sums = true;
      check(problem, seed++);
      problem.output = DType::f32;
      problem.beta = -1.5f;
      problem.bias = problem.relu = true;
      check(problem, seed++);
    }
}

TEST_P(GemmOnGpu, LongK) {
  for (const Math math : kMaths) check(problem_of(math, true, false, 64, 72, 20000), 61);
}

// Captures a product in a CUDA graph before any launch, as a step does whose choices come from a
// tuning file.
TEST_P(GemmOnGpu, CanBeCaptured) {
  Problem problem = sized(problem_of(Math::bf16, false, false, 256, 128, 4096));
  if (!supports(GetParam(), problem)) problem.math = Math::fp32;
  const Plan chosen = plan(GetParam(), problem);
  const DeviceBuffer a(256 * 4096 * 4), b(4096 * 128 * 4), c(256 * 128 * 4),
      workspace(chosen.workspace_bytes);
  const Launch launch =
      bind(problem, chosen, {a.data(), b.data(), c.data(), nullptr, nullptr, workspace.data()});
  const CapturedGraph graph = CapturedGraph::capture([&](Stream stream) { launch(stream); });
  EXPECT_GE(graph.nodes(), 1u);
  const CudaStream stream;
  graph.launch(stream.get());
  EXPECT_NO_THROW(stream.synchronize());
}

// Returns whether the plan that is expected to be the fastest reads both operands without a
// transposed copy. The name of its tile then contains an "r".
bool reads_as_they_are(const Problem& problem) {
  const Plan best = plan(problem);
  return best.rung == Rung::wgmma && best.to_string().find("r", 5) != std::string::npos;
}

// Weight gradients in tf32 must use tiles that read the operands without transposed copies. Other
// problems must not.
TEST(GemmChoice, HopperReadsTf32GradientsAsTheyAre) {
  if (!device_present()) GTEST_SKIP() << "no CUDA device";
  const Problem aligned = problem_of(Math::tf32, true, false, 256, 2304, 50176);
  if (!supports(Rung::wgmma, aligned)) GTEST_SKIP() << "not a Hopper";
  EXPECT_TRUE(reads_as_they_are(aligned));
  EXPECT_FALSE(reads_as_they_are(problem_of(Math::tf32, true, false, 64, 147, 20001)));
  EXPECT_FALSE(reads_as_they_are(problem_of(Math::tf32, false, false, 256, 2304, 50176)));
  EXPECT_FALSE(reads_as_they_are(problem_of(Math::bf16, true, false, 256, 2304, 50176)));
}

// The plan that is measured to be the fastest must be kept in the tuning file. A run that reads the
// file must use the plan in it, even if this plan is cuBLAS.
TEST(GemmChoice, IsKeptInTheTuningFile) {
  if (!device_present()) GTEST_SKIP() << "no CUDA device";
  const auto file = std::filesystem::temp_directory_path() / "convoy_gemm_tuning.json";
  std::filesystem::remove(file);
  const Problem problem = problem_of(Math::fp32, false, true, 256, 192, 320);
  tuning::use(file, tuning::Mode::measure);
  const std::string measured = chosen(problem).to_string(), cublas = plan(Rung::cublas, problem).to_string();
  tuning::save();
  std::string text;
  {
    std::ifstream in(file);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (const std::string& name : {cublas, plan(problem).to_string()}) {
    std::string changed = text;
    ASSERT_NE(changed.find(measured), std::string::npos) << text;
    changed.replace(changed.find(measured), measured.size(), name);
    std::ofstream(file) << changed;
    tuning::use(file, tuning::Mode::read);
    EXPECT_EQ(chosen(problem).to_string(), name);
  }
  tuning::stop();
  std::filesystem::remove(file);
}

INSTANTIATE_TEST_SUITE_P(Rungs, GemmOnGpu, ::testing::ValuesIn(kRungs),
                         [](const auto& rung) { return std::string(name_of(rung.param)); });

}  // namespace
}  // namespace convoy::kernels::gemm

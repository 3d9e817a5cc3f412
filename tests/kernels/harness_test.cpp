// Tests that the harness finds faulty kernels. Replaces operator new to count allocations.
#include "tests/kernels/harness.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>

#include "kernels/device/host_kernel.h"

namespace {
std::atomic<long> allocation_count = 0;
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocation_count;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace convoy::kernels::testing {

long allocations() { return allocation_count; }

namespace {

// Makes a kernel for y = x with the fault that `body` has.
template <typename Body>
Case faulty(Body body) {
  Case test;
  test.name = "faulty";
  test.maker = [body](Backend, KernelRequest& request) {
    require_row_major("faulty", request);
    return host_kernel(body, {}, 4);
  };
  test.inputs = {Random(1).uniform({4})};
  test.outputs = {f32({4})};
  return test;
}

void copy(const BoundOperands& operands) { std::copy_n(operands.in(0), 4, operands.out(0)); }

TEST(Harness, SeesOutputsThatWereNotWritten) {
  const Case test =
      faulty([](const BoundOperands& operands) { std::copy_n(operands.in(0), 3, operands.out(0)); });
  const Tensor result = run(Backend::reference, Layout::row_major, test).outputs[0];
  EXPECT_NONFATAL_FAILURE(expect_close(result, test.inputs[0], 1e-6, ""), "relative L2 error");
}

TEST(Harness, SeesWritesBeyondABuffer) {
  const auto beyond = [](const BoundOperands& operands) {
    copy(operands);
    operands.out(0)[4] = 0;
  };
  static Case test;
  test = faulty(beyond);
  EXPECT_NONFATAL_FAILURE(run(Backend::reference, Layout::row_major, test), "wrote beyond output 0");
}

TEST(Harness, SeesAChangedInput) {
  static Case test;
  test = faulty([](const BoundOperands& operands) {
    copy(operands);
    operands.inout(0)[1] = 7;
  });
  EXPECT_NONFATAL_FAILURE(run(Backend::reference, Layout::row_major, test), "changed input 0");
}

TEST(Harness, SeesALaunchThatDependsOnTheLast) {
  static Case test;
  test = faulty([launches = std::make_shared<int>(0)](const BoundOperands& operands) {
    copy(operands);
    operands.out(0)[2] += static_cast<float>(++*launches);
  });
  EXPECT_NONFATAL_FAILURE(run(Backend::reference, Layout::row_major, test),
                          "a second launch gives other bits");
}

TEST(Harness, SeesALaunchThatAllocates) {
  static Case test;
  test = faulty([](const BoundOperands& operands) {
    const std::vector<float> taken(operands.in(0), operands.in(0) + 4);
    std::copy(taken.begin(), taken.end(), operands.out(0));
  });
  run(Backend::reference, Layout::row_major, test);  // the reference may allocate
  EXPECT_NONFATAL_FAILURE(run(Backend::cpu, Layout::row_major, test), "allocates memory when it is launched");
}

// Makes a kernel that computes x + StepControl::step for each member, but wrongly skips members
// from number `count` on.
Case for_members(int count) {
  Case test = faulty(copy);
  test.maker = [count](Backend, KernelRequest& request) {
    require_row_major("for_members", request);
    Kernel kernel = host_kernel([count](const BoundOperands& operands) {
      for (int member = 0; member < std::min(count, operands.members.count); ++member) {
        const std::ptrdiff_t floats = member * operands.members.stride / std::ptrdiff_t(sizeof(float));
        const auto* control =
            reinterpret_cast<const StepControl*>(reinterpret_cast<const float*>(operands.control()) + floats);
        for (int i = 0; i < 4; ++i)
          operands.out(0)[floats + i] = operands.in(0)[floats + i] + float(control->step);
      }
    });
    kernel.takes_members = true;
    return kernel;
  };
  return test;
}

TEST(Harness, AcceptsOneLaunchOfAllMembers) { run(Backend::reference, Layout::row_major, for_members(3)); }

TEST(Harness, SeesAMemberThatIsLeftOut) {
  static Case test;
  test = for_members(2);
  EXPECT_NONFATAL_FAILURE(run(Backend::reference, Layout::row_major, test), "output 0 of member 2");
}

TEST(Harness, SeesAMemberThatReadsAnother) {
  static Case test;
  test = faulty(copy);
  test.maker = [](Backend, KernelRequest& request) {
    require_row_major("reads another", request);
    Kernel kernel = host_kernel([](const BoundOperands& operands) {
      for (int member = 0; member < operands.members.count; ++member)
        std::copy_n(operands.in(0), 4,
                    operands.out(0) + member * operands.members.stride / std::ptrdiff_t(sizeof(float)));
    });
    kernel.takes_members = true;
    return kernel;
  };
  EXPECT_NONFATAL_FAILURE(run(Backend::reference, Layout::row_major, test), "of member 1");
}

TEST(Harness, DifferentiatesACube) {
  const Case cube = faulty([](const BoundOperands& operands) {
    for (int i = 0; i < 4; ++i)
      operands.out(0)[i] = operands.in(0)[i] * operands.in(0)[i] * operands.in(0)[i];
  });
  std::vector<double> expected;
  for (const double x : cube.inputs[0].values) expected.push_back(2 * 3 * x * x);
  expect_gradient(expected, central_differences(cube, 0, {{2, 2, 2, 2}}), "cube");
}

TEST(Harness, RefusesABackendThatIsNotBuilt) {
  const auto* none = static_cast<int*>(nullptr);
  EXPECT_THROW(select(Backend::cuda, &none, &none, nullptr), std::runtime_error);
}

}  // namespace
}  // namespace convoy::kernels::testing

#include "kernels/conv2d/cuda/joined_pixels.h"

#include "kernels/device/cuda_kernel.h"

namespace convoy::kernels::conv {
namespace {

// Returns whether joining pixels is faster than a plain product. Joining costs multiplications by
// zeros. The plain product must copy operands and results whose rows are not multiples of 16 bytes.
bool joining_pays(const Task& task, int joined) {
  constexpr double kRate = 350e6;  // operations per microsecond of tensor cores in bf16
  const Geometry& g = task.geometry;
  const double type = double(bytes_of(task.type())), pixels = double(g.x_pixels());
  const auto unaligned = [&](int channels) { return channels % int(16 / type) != 0 ? channels : 0; };
  const double c = unaligned(g.c), k = unaligned(g.k), sums = 2 * double(bytes_of(DType::f32));
  const double again = task.direction == Direction::forward         ? 2 * type * c + sums * k
                       : task.direction == Direction::backward_data ? 2 * type * k + sums * c
                                                                    : 2 * type * (c + k);
  const double rate = task.type() == DType::bf16 ? kRate : kRate / 2;
  return joined * task.operations() / rate < (task.bytes() + pixels * again) / kReferenceGpu.planned_bytes;
}

}  // namespace

Task with_joined_pixels(const Task& task) {
  const Geometry& g = task.geometry;
  if (task.input_affine || g.groups != 1 || g.taps() != 1 || g.stride[0] != 1 || g.stride[1] != 1 ||
      g.padding[0] != 0 || g.padding[1] != 0)
    return task;
  const int joined = cuda::joined_pixels(task.type(), std::int64_t{g.h} * g.w, {g.c, g.k});
  if (joined == 1 || !joining_pays(task, joined)) return task;
  Task rows = task;
  rows.joined = true;
  Geometry& to = rows.geometry;
  to.c *= joined, to.k *= joined, to.groups = joined;
  if (g.w % joined == 0)
    to.w = g.w / joined;
  else
    to.h = 1, to.w = g.h * g.w / joined;
  to.p = to.h, to.q = to.w;
  return rows;
}

}  // namespace convoy::kernels::conv

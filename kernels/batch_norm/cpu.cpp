// Batch normalisation on the host. Each operation passes over memory once, in vectors of 16 or 8
// channels. Sums are formed in float over short runs of pixels, then in double, in an order that
// does not depend on the number of threads. The float sums for the variance are those of x minus
// the first value of the run.
#include "kernels/activation/cpu.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "kernels/batch_norm/batch_norm.h"
#include "kernels/batch_norm/cpu_passes.h"

namespace convoy::kernels::cpu {
namespace {

// The samples are divided into this many pieces, or into one piece per sample if there are fewer
// samples. Each piece is summed separately. The pieces do not depend on the number of threads, so
// the bits of the sums do not, either.
constexpr std::int64_t kPieces = 16;

struct Moments {
  double mean = 0, variance = 1, count = 0;
  Moments(const double* sums, std::int64_t channel, std::int64_t channels, double count) : count(count) {
    if (count <= 0) return;
    mean = sums[channel] / count;
    variance = std::max(0.0, sums[channels + channel] / count - mean * mean);
  }
};

double sample_count(const BatchNormProblem& problem, const StepControl& control, const BatchNormLayout& at) {
  return static_cast<double>(problem.synchronised ? control.global_valid : control.valid) *
         static_cast<double>(at.pixels);
}

void set_normalisation(const Coefficients& to, const BatchNormLayout& at, const BatchNormProblem& problem,
                       const double* sums, double count, const float* gamma, const float* beta) {
  std::fill(to.mean, to.mean + Coefficients::kVectors * at.padded(), 0.0f);
  for (std::int64_t c = 0; c < at.channels; ++c) {
    const Moments moments(sums, c, at.channels, count);
    to.mean[c] = static_cast<float>(moments.mean);
    to.scale[c] = static_cast<float>(gamma[c] / std::sqrt(moments.variance + problem.epsilon));
    to.shift[c] = beta[c];
  }
}

// Adds up two values per channel over the first `valid` samples, and writes the sums to first[] and
// second[]. task(sample, block, into_first, into_second) must add the values of one sample's block
// of channels to the two arrays. `partial` is a workspace for the sums of kPieces pieces.
template <typename Task>
void sum_over_samples(const BatchNormLayout& at, std::int64_t valid, double* partial, double* first,
                      double* second, const Task& task) {
  const std::int64_t pieces = std::min(kPieces, std::max<std::int64_t>(1, valid));
  const std::int64_t stride = 2 * at.padded();
  parallel_for(pieces * at.blocks, [&](std::int64_t i) {
    const std::int64_t piece = i % pieces, block = i / pieces;
    double* into = partial + piece * stride + 2 * block * at.block;
    std::fill(into, into + 2 * at.block, 0.0);
    for (std::int64_t sample = valid * piece / pieces; sample < valid * (piece + 1) / pieces; ++sample)
      task(sample, block, into, into + at.block);
  });
  for (std::int64_t c = 0; c < at.channels; ++c) {
    const std::int64_t lane = 2 * (c / at.block) * at.block + c % at.block;
    first[c] = second[c] = 0;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      first[c] += partial[piece * stride + lane];
      second[c] += partial[piece * stride + lane + at.block];
    }
  }
}

std::size_t partial_bytes(const BatchNormLayout& at) {
  return static_cast<std::size_t>(kPieces * 2 * at.padded()) * sizeof(double);
}

// Calls task(part, factors) for parts of a pass (Pass, cpu_passes.h) that fit into the L1 cache.
// `factors` is scratch memory with one float per element of the part.
template <typename Task>
void for_each_part(const Pass& pass, int block, const Task& task) {
  // The number of pixels in a part is a multiple of kRun (cpu_passes.cpp), the number of pixels
  // that are summed in float. So dividing a pass into parts does not change its sums.
  constexpr std::int64_t kElements = 4096;
  alignas(64) float factors[kElements];
  const std::int64_t size = kElements / block;
  for (std::int64_t begin = 0; begin < pass.pixels; begin += size)
    task(pass.part(begin, std::min(size, pass.pixels - begin), block), factors);
}

// Writes to `to` the activation's derivative at the normalised value of each element.
void differentiate_pixels(const ActivationProblem& activation, const Pass& pass, int block,
                          std::int64_t channel, float* to) {
  Pass normalised = pass;
  normalised.out = to;
  normalise_task(normalised, block, channel, false, false);
  differentiate(activation, to, pass.pixels * block);
}

void normalise_all(const BatchNormLayout& at, const BatchNormProblem& problem, const float* x,
                   const float* residual, const TensorDesc& y_desc, float* y, const Coefficients& with) {
  parallel_for(at.n * at.blocks, [&](std::int64_t i) {
    const std::int64_t sample = i / at.blocks, block = i % at.blocks, run = at.run_offset(sample, block);
    const Pass pass{x + run,  residual == nullptr ? nullptr : residual + run, nullptr, nullptr, y + run, with,
                    at.pixels};
    if (!problem.activation)
      return normalise_task(pass, at.block, block * at.block, problem.relu, residual != nullptr);
    for_each_part(pass, at.block, [&](const Pass& part, float*) {
      normalise_task(part, at.block, block * at.block, false, false);
      activate(*problem.activation, part.out, part.pixels * at.block);
    });
  });
  if (problem.activation && moves_zero(*problem.activation)) clear_channel_padding(y_desc, y);
}

void update_running(const BatchNormLayout& at, const BatchNormProblem& problem, const double* sums,
                    double count, float* mean, float* variance) {
  if (count <= 0) return;
  for (std::int64_t c = 0; c < at.channels; ++c) {
    const Moments moments(sums, c, at.channels, count);
    const double unbiased = count > 1 ? moments.variance * count / (count - 1) : moments.variance;
    mean[c] = static_cast<float>((1.0 - problem.momentum) * mean[c] + problem.momentum * moments.mean);
    variance[c] = static_cast<float>((1.0 - problem.momentum) * variance[c] + problem.momentum * unbiased);
  }
}

}  // namespace

Kernel batch_norm_statistics(const BatchNormProblem&, KernelRequest& request) {
  require_counts("batch_norm_statistics", request, 1, 1);
  const BatchNormLayout at(request.inputs[0]);
  require_layout("batch_norm_statistics", request.outputs[0], Layout::row_major);
  const auto run = [at](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    auto* sums = operands.out<double>(0);
    sum_over_samples(at, control->valid, operands.scratch<double>(), sums, sums + at.channels,
                     [&](std::int64_t sample, std::int64_t block, double* sum, double* squares) {
                       Pass pass{operands.in(0) + at.run_offset(sample, block),
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 Coefficients(nullptr, at),
                                 at.pixels};
                       sum_task(pass, at.block, sum, squares);
                     });
  };
  return host_kernel(run, {}, partial_bytes(at));
}

Kernel batch_norm_forward(const BatchNormProblem& problem, KernelRequest& request) {
  require_batch_norm_activation("batch_norm_forward", problem);
  require_counts("batch_norm_forward", request, problem.residual ? 7 : 6, 1);
  const BatchNormLayout at(request.inputs[0]);
  match_layout("batch_norm_forward", request.outputs[0], request.inputs[0]);
  if (problem.residual) match_layout("batch_norm_forward", request.inputs[6], request.inputs[0]);
  const auto run = [at, problem, y = request.outputs[0]](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const Coefficients with(operands.workspace, at);
    const double count = sample_count(problem, *control, at);
    set_normalisation(with, at, problem, operands.in<double>(1), count, operands.in(2), operands.in(3));
    normalise_all(at, problem, operands.in(0), problem.residual ? operands.in(6) : nullptr, y,
                  operands.out(0), with);
    update_running(at, problem, operands.in<double>(1), count, operands.inout(4), operands.inout(5));
  };
  return host_kernel(run, {}, Coefficients::bytes(at));
}

Kernel batch_norm_inference(const BatchNormProblem& problem, KernelRequest& request) {
  require_batch_norm_activation("batch_norm_inference", problem);
  require_counts("batch_norm_inference", request, problem.residual ? 6 : 5, 1);
  const BatchNormLayout at(request.inputs[0]);
  match_layout("batch_norm_inference", request.outputs[0], request.inputs[0]);
  if (problem.residual) match_layout("batch_norm_inference", request.inputs[5], request.inputs[0]);
  const auto run = [at, problem, y = request.outputs[0]](const BoundOperands& operands) {
    const Coefficients with(operands.workspace, at);
    std::fill(with.mean, with.mean + Coefficients::kVectors * at.padded(), 0.0f);
    for (std::int64_t c = 0; c < at.channels; ++c) {
      with.mean[c] = problem.linear ? 0 : operands.in(3)[c];
      with.scale[c] =
          static_cast<float>(operands.in(1)[c] / std::sqrt(double{operands.in(4)[c]} + problem.epsilon));
      with.shift[c] = problem.linear ? 0 : operands.in(2)[c];
    }
    normalise_all(at, problem, operands.in(0), problem.residual ? operands.in(5) : nullptr, y,
                  operands.out(0), with);
  };
  return host_kernel(run, {}, Coefficients::bytes(at));
}

Kernel batch_norm_backward_reduce(const BatchNormProblem& problem, KernelRequest& request) {
  require_batch_norm_flags("batch_norm_backward_reduce", problem);
  if (problem.relu_mask)
    throw std::invalid_argument("batch_norm_backward_reduce on the host: relu_mask, expected y");
  const bool reads_y = problem.relu && problem.residual;
  const int second_at = reads_y ? 6 : 5;
  require_counts("batch_norm_backward_reduce", request,
                 static_cast<std::size_t>(second_at + (problem.second_gradient ? 1 : 0)),
                 problem.write_gradient ? 4 : 3);
  const BatchNormLayout at(request.inputs[0]);
  for (std::size_t i = 4; i < request.inputs.size(); ++i)
    match_layout("batch_norm_backward_reduce", request.inputs[i], request.inputs[0]);
  for (std::size_t i = 0; i < 3; ++i)
    require_layout("batch_norm_backward_reduce", request.outputs[i], Layout::row_major);
  if (problem.write_gradient)
    match_layout("batch_norm_backward_reduce", request.outputs[3], request.inputs[0]);
  const MaskSource mask = problem.activation ? MaskSource::factors
                          : !problem.relu    ? MaskSource::none
                          : reads_y          ? MaskSource::from_y
                                             : MaskSource::from_x;
  const auto run = [=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const Coefficients with(operands.workspace, at);
    const auto* sums = operands.in<double>(1);
    const double count = sample_count(problem, *control, at);
    set_normalisation(with, at, problem, sums, count, operands.in(2), operands.in(3));
    auto* partial = operands.scratch<double>() + (Coefficients::bytes(at) + 63) / 64 * 8;
    auto* dsums = operands.out<double>(0);
    float* g = problem.write_gradient ? operands.out(3) : nullptr;
    sum_over_samples(at, control->valid, partial, dsums, dsums + at.channels,
                     [&](std::int64_t sample, std::int64_t block, double* sum, double* product) {
                       const std::int64_t offset = at.run_offset(sample, block);
                       const Pass pass{operands.in(0) + offset,
                                       reads_y ? operands.in(5) + offset : nullptr,
                                       operands.in(4) + offset,
                                       problem.second_gradient ? operands.in(second_at) + offset : nullptr,
                                       g == nullptr ? nullptr : g + offset,
                                       with,
                                       at.pixels};
                       const auto reduce = [&](const Pass& part) {
                         reduce_task(part, at.block, block * at.block, mask, problem.second_gradient,
                                     problem.write_gradient, sum, product);
                       };
                       if (!problem.activation) return reduce(pass);
                       for_each_part(pass, at.block, [&](Pass part, float* factors) {
                         differentiate_pixels(*problem.activation, part, at.block, block * at.block, factors);
                         part.factors = factors;
                         reduce(part);
                       });
                     });
    if (g != nullptr) std::fill(g + at.run_offset(control->valid, 0), g + at.run_offset(at.n, 0), 0.0f);
    for (std::int64_t c = 0; c < at.channels; ++c) {
      const Moments moments(sums, c, at.channels, count);
      dsums[at.channels + c] /= std::sqrt(moments.variance + problem.epsilon);
      operands.out(1)[c] = static_cast<float>(dsums[at.channels + c]);
      operands.out(2)[c] = static_cast<float>(dsums[c]);
    }
  };
  Kernel kernel = host_kernel(run, {}, (Coefficients::bytes(at) + 63) / 64 * 64 + partial_bytes(at));
  if (problem.write_gradient) kernel.in_place = {{4, 3}};
  return kernel;
}

Kernel batch_norm_backward(const BatchNormProblem& problem, KernelRequest& request) {
  require_batch_norm_flags("batch_norm_backward", problem);
  const bool second = problem.second_input_gradient;
  require_counts("batch_norm_backward", request, second ? 7 : 6, 1);
  const BatchNormLayout at(request.inputs[0]);
  match_layout("batch_norm_backward", request.inputs[4], request.inputs[0]);
  if (second) match_layout("batch_norm_backward", request.inputs[6], request.inputs[0]);
  match_layout("batch_norm_backward", request.outputs[0], request.inputs[0]);
  const MaskSource mask = !differentiates_again(problem) ? MaskSource::none
                          : problem.activation           ? MaskSource::factors
                                                         : MaskSource::from_x;
  const auto run = [=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const Coefficients with(operands.workspace, at);
    const auto *sums = operands.in<double>(1), *dsums = operands.in<double>(5);
    const double count = sample_count(problem, *control, at);
    set_normalisation(with, at, problem, sums, count, operands.in(2), operands.in(3));
    for (std::int64_t c = 0; c < at.channels && count > 0; ++c) {
      const Moments moments(sums, c, at.channels, count);
      const double inverse = 1.0 / std::sqrt(moments.variance + problem.epsilon),
                   scale = operands.in(2)[c] * inverse;
      with.slope[c] = static_cast<float>(-scale * inverse * dsums[at.channels + c] / count);
      with.offset[c] = static_cast<float>(-scale * dsums[c] / count);
    }
    parallel_for(at.n * at.blocks, [&](std::int64_t i) {
      const std::int64_t sample = i / at.blocks, block = i % at.blocks, offset = at.run_offset(sample, block);
      float* dx = operands.out(0) + offset;
      if (sample >= control->valid) return static_cast<void>(std::fill(dx, dx + at.pixels * at.block, 0.0f));
      const float* dx2 = second ? operands.in(6) + offset : nullptr;
      const Pass pass{operands.in(0) + offset, dx2, operands.in(4) + offset, nullptr, dx, with, at.pixels};
      if (mask != MaskSource::factors) return backward_task(pass, at.block, block * at.block, mask, second);
      for_each_part(pass, at.block, [&](Pass part, float* factors) {
        differentiate_pixels(*problem.activation, part, at.block, block * at.block, factors);
        part.factors = factors;
        backward_task(part, at.block, block * at.block, mask, second);
      });
    });
  };
  Kernel kernel = host_kernel(run, {{4, 0}, {0, 0}}, Coefficients::bytes(at));
  if (second) kernel.in_place.push_back({6, 0});
  return kernel;
}

}  // namespace convoy::kernels::cpu

// Updates all parameters, which lie in one flat buffer. A segment is the range of one parameter
// tensor. Threads update pieces of segments in parallel. Squares are summed over each piece, and
// these sums are added in the order of the pieces. So norms do not depend on the number of threads.
#include <algorithm>
#include <cmath>

#include "kernels/device/host_kernel.h"
#include "kernels/device/parallel.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::kernels::cpu {
namespace {

CONVOY_VECTORISED double squared_sum(const float* values, std::int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]) * values[i];
  return sum;
}

// The constants in the update of a piece. `rate` is the learning rate times LARS's trust ratio
// times the segment's factor.
struct Update {
  float rate, scale, decay;
  float factor;  // factor of the learning rate, for this segment
  float momentum;
  bool nesterov;
};

CONVOY_VECTORISED void sgd(const Update& u, float* w, const float* gradients, float* velocity,
                           std::int64_t count) {
  const float rate = u.rate, scale = u.scale, decay = u.decay, momentum = u.momentum;
  // This formula covers plain and Nesterov momentum: w -= rate (of_velocity v + of_gradient g).
  const float of_velocity = u.nesterov ? momentum : 1, of_gradient = u.nesterov ? 1 : 0;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = scale * gradients[i] + decay * w[i];
    const float v = momentum * velocity[i] + g;
    velocity[i] = v;
    w[i] -= rate * (of_velocity * v + of_gradient * g);
  }
}

CONVOY_VECTORISED void plain_sgd(const Update& u, float* w, const float* gradients, std::int64_t count) {
  const float rate = u.rate, scale = u.scale, decay = u.decay;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) w[i] -= rate * (scale * gradients[i] + decay * w[i]);
}

CONVOY_VECTORISED void lars(const Update& u, float* w, const float* gradients, float* velocity,
                            std::int64_t count) {
  const float rate = u.rate, scale = u.scale, decay = u.decay, momentum = u.momentum;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float v = momentum * velocity[i] + rate * (scale * gradients[i] + decay * w[i]);
    velocity[i] = v;
    w[i] -= v;
  }
}

struct AdamFactors {
  float beta1, beta2, epsilon;
  float step_size;     // learning rate / (1 - beta1^t), without the segment's factor
  float inverse_root;  // 1 / sqrt(1 - beta2^t)
};

CONVOY_VECTORISED void adamw(const Update& u, const AdamFactors& a, float* w, const float* gradients,
                             float* first, float* second, std::int64_t count) {
  const float scale = u.scale, shrink = 1 - u.rate * u.decay;
  const float beta1 = a.beta1, beta2 = a.beta2, epsilon = a.epsilon, size = a.step_size * u.factor,
              root = a.inverse_root;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = scale * gradients[i];
    const float m = beta1 * first[i] + (1 - beta1) * g;
    const float v = beta2 * second[i] + (1 - beta2) * g * g;
    first[i] = m;
    second[i] = v;
    w[i] = w[i] * shrink - size * m / (std::sqrt(v) * root + epsilon);
  }
}

CONVOY_VECTORISED void move_average(float* average, const float* values, std::int64_t count, float rate) {
  if (rate == 1) {
    std::copy_n(values, count, average);
    return;
  }
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) average[i] += rate * (values[i] - average[i]);
}

// A range of elements of one segment. Dividing segments into pieces balances the work of the
// threads.
struct Piece {
  std::int64_t offset, count;
  int segment;
};

std::vector<Piece> cut(const std::vector<ParameterSegment>& segments) {
  std::vector<Piece> pieces;
  for (std::size_t s = 0; s < segments.size(); ++s)
    for (std::int64_t at = 0; at < segments[s].count; at += kPiece)
      pieces.push_back(
          {segments[s].offset + at, std::min(kPiece, segments[s].count - at), static_cast<int>(s)});
  return pieces;
}

struct Plan {
  OptimizerProblem problem;
  std::vector<Piece> pieces;
};

// Computes LARS's trust ratio trust[s] for every segment s. `norms` is scratch memory for two sums
// per piece: of the squares of parameters and of gradients.
void find_trust(const Plan& plan, const BoundOperands& operands, double* norms, double* trust) {
  const StepControl& control = *operands.control();
  const auto count = static_cast<std::int64_t>(plan.pieces.size());
  parallel_for(count, [&](std::int64_t i) {
    const Piece& piece = plan.pieces[i];
    norms[2 * i] = squared_sum(operands.in(0) + piece.offset, piece.count);
    norms[2 * i + 1] = squared_sum(operands.in(1) + piece.offset, piece.count);
  });
  std::size_t at = 0;
  for (std::size_t s = 0; s < plan.problem.segments.size(); ++s) {
    double w2 = 0, g2 = 0;
    for (; at < plan.pieces.size() && plan.pieces[at].segment == static_cast<int>(s); ++at) {
      w2 += norms[2 * at];
      g2 += norms[2 * at + 1];
    }
    const ParameterSegment& segment = plan.problem.segments[s];
    const double w = std::sqrt(w2), g = std::sqrt(g2) * std::abs(double(control.gradient_scale));
    const Hyperparameters& numbers = control.hyperparameters;
    const double decay = segment.decay * numbers.weight_decay;
    trust[s] = segment.adapt && w > 0 && g > 0 ? numbers.trust_coefficient * w / (g + decay * w) : 1;
  }
}

AdamFactors adam_factors(const StepControl& control) {
  const Hyperparameters& numbers = control.hyperparameters;
  const double beta1 = numbers.beta1, beta2 = numbers.beta2, t = double(control.step) + 1;
  return {numbers.beta1, numbers.beta2, numbers.epsilon,
          static_cast<float>(control.learning_rate / (1 - std::pow(beta1, t))),
          static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t)))};
}

void update_parameters(const Plan& plan, const Piece& piece, const Update& update, const AdamFactors& adam,
                       const BoundOperands& operands) {
  float* w = operands.inout(0) + piece.offset;
  const float* gradients = operands.in(1) + piece.offset;
  const auto state = [&](int index) { return operands.inout(2 + index) + piece.offset; };
  switch (plan.problem.kind) {
    case OptimizerKind::sgd:
      if (!plan.problem.velocity) return plain_sgd(update, w, gradients, piece.count);
      return sgd(update, w, gradients, state(0), piece.count);
    case OptimizerKind::lars:
      return lars(update, w, gradients, state(0), piece.count);
    case OptimizerKind::adamw:
      return adamw(update, adam, w, gradients, state(0), state(1), piece.count);
  }
}

// Updates the parameters of a piece and then, while these are in the cache, their moving average.
void update_piece(const Plan& plan, const Piece& piece, const Update& update, const AdamFactors& adam,
                  const BoundOperands& operands) {
  update_parameters(plan, piece, update, adam, operands);
  if (!plan.problem.averages) return;
  const StepControl& control = *operands.control();
  float* average = operands.inout(optimizer_inputs(plan.problem) - 1) + piece.offset;
  move_average(average, operands.in(0) + piece.offset, piece.count, average_rate(control));
}

}  // namespace

Kernel optimizer_update(const OptimizerProblem& problem, KernelRequest& request) {
  require_counts("optimizer_update", request, optimizer_inputs(problem), 0);
  require_row_major("optimizer_update", request);
  for (const TensorDesc& input : request.inputs)
    require_shape("optimizer_update", "a buffer", input, request.inputs[0].shape);
  const Plan plan{problem, cut(problem.segments)};
  const std::size_t norms = problem.kind == OptimizerKind::lars ? 2 * plan.pieces.size() : 0;
  const auto body = [plan, norms](const BoundOperands& operands) {
    const OptimizerProblem& p = plan.problem;
    const StepControl& control = *operands.control();
    const Hyperparameters& numbers = control.hyperparameters;
    double* trust = operands.scratch<double>() + norms;
    if (p.kind == OptimizerKind::lars) find_trust(plan, operands, operands.scratch<double>(), trust);
    const AdamFactors adam = adam_factors(control);
    parallel_for(static_cast<std::int64_t>(plan.pieces.size()), [&](std::int64_t i) {
      const Piece& piece = plan.pieces[i];
      const double factor = p.kind == OptimizerKind::lars ? trust[piece.segment] : 1;
      const ParameterSegment& segment = p.segments[piece.segment];
      const Update update{static_cast<float>(control.learning_rate * factor * segment.rate),
                          control.gradient_scale,
                          segment.decay * numbers.weight_decay,
                          segment.rate,
                          numbers.momentum,
                          numbers.nesterov != 0};
      update_piece(plan, piece, update, adam, operands);
    });
  };
  return host_kernel(body, {}, (norms + problem.segments.size()) * sizeof(double));
}

Kernel moving_average(const MovingAverageProblem&, KernelRequest& request) {
  const std::int64_t count = check_moving_average(request);
  return host_kernel([=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    parallel_pieces(count, kPiece, [&](std::int64_t begin, std::int64_t end) {
      move_average(operands.inout(1) + begin, operands.in(0) + begin, end - begin, average_rate(*control));
    });
  });
}

Kernel squared_norm(const SquaredNormProblem&, KernelRequest& request) {
  require_counts("squared_norm", request, 1, 1);
  require_row_major("squared_norm", request);
  require_shape("squared_norm", "the sum", request.outputs[0], {1});
  require_dtype("squared_norm", "the sum", request.outputs[0], DType::f64);
  const std::int64_t count = request.inputs[0].shape.elements(), pieces = (count + kPiece - 1) / kPiece;
  const auto body = [=](const BoundOperands& operands) {
    auto* partial = operands.scratch<double>();
    parallel_pieces(count, kPiece, [&](std::int64_t begin, std::int64_t end) {
      partial[begin / kPiece] = squared_sum(operands.in(0) + begin, end - begin);
    });
    double sum = 0;
    for (std::int64_t i = 0; i < pieces; ++i) sum += partial[i];
    *operands.out<double>(0) = sum;
  };
  return host_kernel(body, {}, static_cast<std::size_t>(pieces) * sizeof(double));
}

}  // namespace convoy::kernels::cpu

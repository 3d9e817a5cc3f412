// Optimizers on the device. All parameters lie in one flat buffer, and a segment is the range of
// one parameter tensor. Segments are divided into chunks. A block updates one chunk, so one launch
// updates all segments. For LARS, an earlier launch computes the trust ratio of every segment.
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/cuda_reduce.cuh"
#include "kernels/optimizer/optimizer.h"

namespace convoy::kernels::cuda {
namespace {

constexpr int kWidth = 4;  // floats that one access moves
// The most elements that a block updates. Short blocks soon leave their multiprocessors to others.
// For LARS it also determines the order of sums, and so the bits.
constexpr int kChunk = kThreads * 4, kLarsChunk = kThreads * 16;

struct Chunk {
  std::int64_t offset;
  std::int32_t count, segment;
};

struct Segment {
  std::int32_t first_chunk, chunks;
  float decay, rate;
  bool adapt;
};

struct Buffers {
  float* parameters;
  const float* gradients;
  float *first, *second;  // the optimizer's states; null if there are none
  float* average;         // the parameters' moving average; null if there is none
  bf16* copy;             // the parameters in bf16; null if there is no copy

  template <typename Visit>
  __device__ void each_pointer(Visit visit) {
    visit(parameters, gradients, first, second, average, copy);
  }
};

struct Settings {
  OptimizerKind kind;
  bool velocity;
};

// The constants for updating a segment in this step.
struct Rates {
  // correction1 is 1 / (1 - beta1 ^ t), and correction2 is 1 / (1 - beta2 ^ t).
  float rate, scale, decay, trust, correction1, correction2;
  float average;
  float momentum, beta1, beta2, epsilon;
  bool nesterov;
};

// Moves an average towards a value. With `rate` 1, as in the first step, the result is exactly the
// value.
__device__ __forceinline__ float moved(float average, float value, float rate) {
  return rate == 1 ? value : average + rate * (value - average);
}

__device__ __forceinline__ void update(const Settings& s, const Rates& r, float gradient, float& w,
                                       float& first, float& second) {
  const float g = r.scale * gradient;
  if (s.kind == OptimizerKind::adamw) {
    first = r.beta1 * first + (1 - r.beta1) * g;
    second = r.beta2 * second + (1 - r.beta2) * g * g;
    const float step = first * r.correction1 / (sqrtf(second * r.correction2) + r.epsilon);
    w = w * (1 - r.rate * r.decay) - r.rate * step;
    return;
  }
  const float decayed = g + r.decay * w;
  if (s.kind == OptimizerKind::lars) {
    first = r.momentum * first + r.rate * r.trust * decayed;
    w -= first;
  } else if (s.velocity) {
    first = r.momentum * first + decayed;
    w -= r.rate * (r.nesterov ? decayed + r.momentum * first : first);
  } else {
    w -= r.rate * decayed;
  }
}

// Calls visit(index, std::bool_constant<wide>) for the elements of a chunk. If the chunk is
// aligned, `wide` calls handle four elements each; the other calls handle one element.
template <typename Visit>
__device__ __forceinline__ void for_each_in(const Chunk& chunk, Visit visit) {
  const bool wide = chunk.offset % kWidth == 0;
  const int packs = wide ? chunk.count / kWidth : 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < packs; i += kThreads) visit(chunk.offset + i * kWidth, std::true_type{});
  for (int i = packs * kWidth + threadIdx.x; i < chunk.count; i += kThreads)
    visit(chunk.offset + i, std::false_type{});
}

__global__ void __launch_bounds__(kThreads)
    update_chunks(Buffers b, const Chunk* chunks, const Segment* segments, const float* trust, Settings s,
                  const StepControl* control, std::ptrdiff_t member_stride) {
  b = of_member(b, member_stride);
  move_to_member(member_stride, trust, control);
  __shared__ Rates shared;
  const Chunk chunk = chunks[blockIdx.x];
  if (threadIdx.x == 0) {
    const double t = static_cast<double>(control->step) + 1;
    const Hyperparameters& numbers = control->hyperparameters;
    const bool adam = s.kind == OptimizerKind::adamw;
    shared = {control->learning_rate * segments[chunk.segment].rate,
              control->gradient_scale,
              segments[chunk.segment].decay * numbers.weight_decay,
              trust != nullptr ? trust[chunk.segment] : 1.0f,
              adam ? static_cast<float>(1 / (1 - pow(static_cast<double>(numbers.beta1), t))) : 1.0f,
              adam ? static_cast<float>(1 / (1 - pow(static_cast<double>(numbers.beta2), t))) : 1.0f,
              average_rate(*control),
              numbers.momentum,
              numbers.beta1,
              numbers.beta2,
              numbers.epsilon,
              numbers.nesterov != 0};
  }
  __syncthreads();
  const Rates rates = shared;
  for_each_in(chunk, [&](std::int64_t at, auto wide) {
    constexpr int kV = decltype(wide)::value ? kWidth : 1;
    Pack<float, kV> w = load_pack<kV>(b.parameters + at);
    const Pack<float, kV> g = load_pack<kV>(b.gradients + at);
    Pack<float, kV> first = b.first != nullptr ? load_pack<kV>(b.first + at) : zero_pack<float, kV>();
    Pack<float, kV> second = b.second != nullptr ? load_pack<kV>(b.second + at) : zero_pack<float, kV>();
#pragma unroll
    for (int i = 0; i < kV; ++i) update(s, rates, g.value[i], w.value[i], first.value[i], second.value[i]);
    store_pack(b.parameters + at, w);
    if (b.first != nullptr) store_pack(b.first + at, first);
    if (b.second != nullptr) store_pack(b.second + at, second);
    if (b.average != nullptr) {
      Pack<float, kV> average = load_pack<kV>(b.average + at);
#pragma unroll
      for (int i = 0; i < kV; ++i) average.value[i] = moved(average.value[i], w.value[i], rates.average);
      store_pack(b.average + at, average);
    }
    if (b.copy != nullptr) store_pack(b.copy + at, pack_of<bf16>(w.value));
  });
}

// Adds up the squares of a chunk's parameters and gradients. The last block to finish its chunk of
// a segment computes the segment's trust ratio from the sums of all chunks.
__global__ void __launch_bounds__(kThreads)
    trust_ratios(Buffers b, const Chunk* chunks, const Segment* segments, const StepControl* control,
                 Values<2, double>* partials, unsigned* tickets, unsigned segment_count, float* trust,
                 std::ptrdiff_t member_stride) {
  b = of_member(b, member_stride);
  move_to_member(member_stride, control, partials, trust);
  tickets += blockIdx.z * segment_count;
  __shared__ Values<2, double> shared[kThreads / 32];
  const Chunk chunk = chunks[blockIdx.x];
  const Segment segment = segments[chunk.segment];
  Values<2, double> squares{};  // squares of the parameters, then of the gradients
  if (segment.adapt)
    for_each_in(chunk, [&](std::int64_t at, auto wide) {
      constexpr int kV = decltype(wide)::value ? kWidth : 1;
      const Pack<float, kV> w = load_pack<kV>(b.parameters + at), g = load_pack<kV>(b.gradients + at);
      for (int i = 0; i < kV; ++i) {
        squares.value[0] += static_cast<double>(w.value[i]) * w.value[i];
        squares.value[1] += static_cast<double>(g.value[i]) * g.value[i];
      }
    });
  squares = block_sums<kThreads>(squares, shared);
  if (threadIdx.x == 0) partials[blockIdx.x] = squares;
  if (!draws_last_ticket(&tickets[chunk.segment], segment.chunks)) return;
  squares = {};
  for (int i = threadIdx.x; i < segment.chunks; i += kThreads)
    for (int k = 0; k < 2; ++k) squares.value[k] += partials[segment.first_chunk + i].value[k];
  squares = block_sums<kThreads>(squares, shared);
  if (threadIdx.x != 0) return;
  const double w = sqrt(squares.value[0]);
  const double g = fabs(static_cast<double>(control->gradient_scale)) * sqrt(squares.value[1]);
  const Hyperparameters& numbers = control->hyperparameters;
  const double decay = segment.decay * numbers.weight_decay;
  trust[chunk.segment] = segment.adapt && w > 0 && g > 0
                             ? static_cast<float>(numbers.trust_coefficient * w / (g + decay * w))
                             : 1.0f;
}

__global__ void __launch_bounds__(kThreads)
    sum_of_squares(const float* gradients, std::int64_t count, double* partials, unsigned* ticket,
                   double* result, std::ptrdiff_t member_stride) {
  move_to_member(member_stride, gradients, partials, result);
  ticket += blockIdx.z;
  __shared__ Values<1, double> shared[kThreads / 32];
  const std::int64_t packs = count / kWidth, turn = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  double sum = 0;
#pragma unroll 4
  for (std::int64_t i = first; i < packs; i += turn) {
    const Pack<float, kWidth> g = load_pack<kWidth>(gradients + i * kWidth);
    for (int k = 0; k < kWidth; ++k) sum += static_cast<double>(g.value[k]) * g.value[k];
  }
  if (first < count % kWidth) {
    const double g = gradients[packs * kWidth + first];
    sum += g * g;
  }
  sum = block_sums<kThreads, 1, double>({sum}, shared).value[0];
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
  if (!draws_last_ticket(ticket, gridDim.x)) return;
  sum = 0;
  for (int i = threadIdx.x; i < static_cast<int>(gridDim.x); i += kThreads) sum += partials[i];
  sum = block_sums<kThreads, 1, double>({sum}, shared).value[0];
  if (threadIdx.x == 0) *result = sum;
}

__global__ void __launch_bounds__(kThreads)
    move_averages(const float* values, float* averages, std::int64_t count, const StepControl* control,
                  std::ptrdiff_t member_stride) {
  move_to_member(member_stride, values, averages, control);
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) averages[i] = moved(averages[i], values[i], average_rate(*control));
}

__global__ void write_clip_scale(const double* squares, const StepControl* control, float* scale,
                                 std::ptrdiff_t member_stride) {
  move_to_member(member_stride, squares, control, scale);
  const double ratio = control->hyperparameters.largest_norm / sqrt(*squares);
  *scale = ratio < 1 ? static_cast<float>(ratio) : 1.0f;
}

struct Tables {
  std::vector<Chunk> chunks;
  std::vector<Segment> segments;
};

Tables tables_of(const OptimizerProblem& problem) {
  const int chunk = problem.kind == OptimizerKind::lars ? kLarsChunk : kChunk;
  Tables tables;
  for (const ParameterSegment& segment : problem.segments) {
    const auto index = static_cast<std::int32_t>(tables.segments.size());
    const auto first = static_cast<std::int32_t>(tables.chunks.size());
    for (std::int64_t done = 0; done < segment.count; done += chunk)
      tables.chunks.push_back({segment.offset + done,
                               static_cast<std::int32_t>(std::min<std::int64_t>(chunk, segment.count - done)),
                               index});
    tables.segments.push_back({first, static_cast<std::int32_t>(tables.chunks.size()) - first, segment.decay,
                               segment.rate, segment.adapt});
  }
  return tables;
}

void check_update(const char* operation, const OptimizerProblem& problem, KernelRequest& request) {
  require_counts(operation, request, optimizer_inputs(problem), request.outputs.empty() ? 0 : 1);
  for (TensorDesc& input : request.inputs) {
    require_layout(operation, input, Layout::row_major);
    require_shape(operation, "a buffer", input, request.inputs[0].shape);
    require_dtype(operation, "a buffer", input, DType::f32);
  }
  for (TensorDesc& copy : request.outputs) {
    require_layout(operation, copy, Layout::row_major);
    require_shape(operation, "the copy", copy, request.inputs[0].shape);
    require_dtype(operation, "the copy", copy, DType::bf16);
  }
}

}  // namespace

Kernel optimizer_update(const OptimizerProblem& problem, KernelRequest& request) {
  check_update("optimizer_update", problem, request);
  const bool has_copy = !request.outputs.empty(), lars = problem.kind == OptimizerKind::lars;
  const int states = optimizer_states(problem), inputs = optimizer_inputs(problem);
  const Tables tables = tables_of(problem);
  const Settings settings{problem.kind, states > 0};
  const auto chunk_count = static_cast<unsigned>(tables.chunks.size());
  const std::size_t segment_count = tables.segments.size();
  Kernel kernel;
  kernel.takes_members = true;
  if (lars) kernel.workspace_bytes = chunk_count * sizeof(Values<2, double>) + segment_count * sizeof(float);
  kernel.bind = [=](const Operands& operands) -> Launch {
    const auto chunks = upload(tables.chunks);
    const auto segments = upload(tables.segments);
    const auto tickets =
        lars ? reserve_tickets(static_cast<int>(segment_count) * operands.members.count) : nullptr;
    const auto update_all = [=](const BoundOperands& b, Stream stream) {
      if (chunk_count == 0) return;
      const Buffers buffers{b.inout(0),
                            b.in(1),
                            states > 0 ? b.inout(2) : nullptr,
                            states > 1 ? b.inout(3) : nullptr,
                            inputs > 2 + states ? b.inout(inputs - 1) : nullptr,
                            has_copy ? b.out<bf16>(0) : nullptr};
      auto* partials = b.scratch<Values<2, double>>();
      float* trust = lars ? reinterpret_cast<float*>(partials + chunk_count) : nullptr;
      if (lars)
        launch(trust_ratios, chunk_count, kThreads, stream, b.members, buffers, chunks.get(), segments.get(),
               b.control(), partials, tickets.get(), static_cast<unsigned>(segment_count), trust);
      launch(update_chunks, chunk_count, kThreads, stream, b.members, buffers, chunks.get(), segments.get(),
             trust, settings, b.control());
    };
    return device_kernel(update_all).bind(operands);
  };
  return kernel;
}

Kernel squared_norm(const SquaredNormProblem&, KernelRequest& request) {
  const char* operation = "squared_norm";
  require_counts(operation, request, 1, 1);
  require_layout(operation, request.inputs[0], Layout::row_major);
  require_layout(operation, request.outputs[0], Layout::row_major);
  require_dtype(operation, "the gradients", request.inputs[0], DType::f32);
  require_shape(operation, "the sum", request.outputs[0], {1});
  require_dtype(operation, "the sum", request.outputs[0], DType::f64);
  const std::int64_t count = request.inputs[0].shape.elements();
  const unsigned blocks = resident_grid(ceil_div(count, 4 * kWidth));
  const auto body = [=](const BoundOperands& b, unsigned* ticket, Stream stream) {
    launch(sum_of_squares, blocks, kThreads, stream, b.members, b.in(0), count, b.scratch<double>(), ticket,
           b.out<double>(0));
  };
  return ticketed_kernel(body, 1, {}, blocks * sizeof(double));
}

Kernel moving_average(const MovingAverageProblem&, KernelRequest& request) {
  const std::int64_t count = check_moving_average(request);
  const auto blocks = static_cast<unsigned>(ceil_div(count, kThreads));
  return device_kernel([=](const BoundOperands& b, Stream stream) {
    if (count > 0)
      launch(move_averages, blocks, kThreads, stream, b.members, b.in(0), b.inout(1), count, b.control());
  });
}

Kernel clip_scale(const ClipProblem&, KernelRequest& request) {
  check_clip_scale(request);
  return device_kernel([](const BoundOperands& b, Stream stream) {
    launch(write_clip_scale, 1, 1, stream, b.members, b.in<double>(0), b.control(), b.out(0));
  });
}

}  // namespace convoy::kernels::cuda

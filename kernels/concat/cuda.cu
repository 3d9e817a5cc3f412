// Concatenates the rows of channels_last images on the device. A row is the channels of one pixel.
// Rows are copied in pieces of 2, 4, 8 or 16 bytes: the largest size that divides the rows of all
// parts.
#include "kernels/concat/concat.h"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/divider.h"

namespace convoy::kernels::cuda {
namespace {

constexpr int kMost = 16;        // the most tensors that one launch concatenates
constexpr int kPieceBytes = 16;  // bytes of the largest piece

struct Parts {
  void* address[kMost];
  // The column of the whole tensor at which each part begins; the last entry is where the last part
  // ends. A column is one Piece (2 to 16 bytes) of each row.
  int first[kMost + 1];
  int count;
};

// Copies the columns [first[0], first[count]). With `join`, copies from the parts to the whole
// tensor, else from the whole tensor to the parts. A thread copies kPieceBytes bytes at a time,
// which may be several pieces.
template <typename Piece>
__global__ void copy_columns(const __grid_constant__ Parts parts, Piece* whole, int row_pieces, bool join,
                             Divider columns, std::int64_t pieces, std::ptrdiff_t member_stride) {
  constexpr int kPieces = kPieceBytes / sizeof(Piece);
  whole = of_member(whole, member_stride);
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x * kPieces;
  for (std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x * kPieces + threadIdx.x; first < pieces;
       first += stride) {
    Piece piece[kPieces];
    Piece* to[kPieces];
#pragma unroll
    for (int k = 0; k < kPieces; ++k) {
      const std::int64_t i = first + k * blockDim.x;
      if (i >= pieces) continue;
      const auto row = static_cast<std::int64_t>(columns(static_cast<std::uint32_t>(i)));
      const int column = static_cast<int>(i - row * columns.divisor) + parts.first[0];
      int part = 0;
      while (column >= parts.first[part + 1]) ++part;
      const int width = parts.first[part + 1] - parts.first[part];
      Piece* in_part = static_cast<Piece*>(of_member(parts.address[part], member_stride)) + row * width +
                       (column - parts.first[part]);
      Piece* in_whole = whole + row * row_pieces + column;
      piece[k] = join ? *in_part : *in_whole;
      to[k] = join ? in_whole : in_part;
    }
#pragma unroll
    for (int k = 0; k < kPieces; ++k)
      if (first + k * blockDim.x < pieces) *to[k] = piece[k];
  }
}

struct Plan {
  std::int64_t rows = 0;
  std::vector<std::int64_t> row_bytes;  // the bytes of a row of each part
  std::int64_t piece = kPieceBytes;     // the bytes of a piece
};

Plan plan_of(const char* operation, std::vector<TensorDesc>& parts, TensorDesc& whole) {
  Plan plan;
  std::int64_t channels = 0;
  require_activation_layout(operation, whole);
  const ImageExtents e = image_extents(whole.shape);
  plan.rows = e.n * e.pixels();
  for (TensorDesc& part : parts) {
    require_activation_layout(operation, part);
    Shape expected = whole.shape;
    expected[1] = part.shape[1];
    require_shape(operation, "a part", part, expected);
    require_dtype(operation, "a part", part, whole.dtype);
    channels += part.shape[1];
    plan.row_bytes.push_back(part.shape[1] * static_cast<std::int64_t>(bytes_of(part.dtype)));
    while (plan.row_bytes.back() % plan.piece != 0) plan.piece /= 2;
  }
  Shape expected = whole.shape;
  expected[1] = channels;
  require_shape(operation, "the whole", whole, expected);
  if (whole.dtype != DType::f64) common_dtype(operation, {&whole});
  return plan;
}

template <typename Piece>
void copy(const Plan& plan, const std::vector<void*>& parts, void* whole, bool join, Stream stream,
          MemberLayout members) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Piece));
  std::int64_t row_pieces = 0;
  for (const std::int64_t bytes : plan.row_bytes) row_pieces += bytes / kBytes;
  int first = 0;
  for (std::size_t next = 0; next < parts.size();) {
    Parts some{};
    some.first[0] = first;
    for (; some.count < kMost && next < parts.size(); ++next) {
      first += static_cast<int>(plan.row_bytes[next] / kBytes);
      some.address[some.count++] = parts[next];
      some.first[some.count] = first;
    }
    // Divider takes numbers below 2^31 only, so larger tensors are copied in several launches.
    const std::int64_t columns = first - some.first[0];
    const std::int64_t band = ((std::int64_t{1} << 31) - 1) / columns;
    for (std::int64_t row = 0; row < plan.rows; row += band) {
      const std::int64_t pieces = std::min(band, plan.rows - row) * columns;
      Parts from_row = some;
      for (int part = 0; part < some.count; ++part)
        from_row.address[part] =
            static_cast<Piece*>(some.address[part]) + row * (some.first[part + 1] - some.first[part]);
      launch(copy_columns<Piece>, grid_for(ceil_div(pieces, kPieceBytes / kBytes)), kThreads, stream, members,
             from_row, static_cast<Piece*>(whole) + row * row_pieces, static_cast<int>(row_pieces), join,
             Divider(columns), pieces);
    }
  }
}

void copy(const Plan& plan, const std::vector<void*>& parts, void* whole, bool join, Stream stream,
          MemberLayout members) {
  switch (plan.piece) {
    case 16:
      return copy<uint4>(plan, parts, whole, join, stream, members);
    case 8:
      return copy<uint2>(plan, parts, whole, join, stream, members);
    case 4:
      return copy<std::uint32_t>(plan, parts, whole, join, stream, members);
    default:
      return copy<std::uint16_t>(plan, parts, whole, join, stream, members);
  }
}

}  // namespace

Kernel concat_forward(const ConcatProblem&, KernelRequest& request) {
  require_counts("concat_forward", request, std::max<std::size_t>(1, request.inputs.size()), 1);
  const Plan plan = plan_of("concat_forward", request.inputs, request.outputs[0]);
  return device_kernel([plan](const BoundOperands& operands, Stream stream) {
    copy(plan, operands.inputs, operands.outputs[0], true, stream, operands.members);
  });
}

Kernel concat_backward(const ConcatProblem&, KernelRequest& request) {
  require_counts("concat_backward", request, 1, std::max<std::size_t>(1, request.outputs.size()));
  const Plan plan = plan_of("concat_backward", request.outputs, request.inputs[0]);
  return device_kernel([plan](const BoundOperands& operands, Stream stream) {
    copy(plan, operands.outputs, operands.inputs[0], false, stream, operands.members);
  });
}

}  // namespace convoy::kernels::cuda

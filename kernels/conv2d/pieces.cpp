#include "kernels/conv2d/pieces.h"

#include <algorithm>
#include <cstdint>

#include "kernels/add/add.h"
#include "kernels/device/host_kernel.h"

namespace convoy::kernels {
namespace {

constexpr std::size_t kAlignment = 256;  // alignment of buffers in the workspace, in bytes

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

void* moved(void* address, std::size_t bytes) { return static_cast<std::uint8_t*>(address) + bytes; }

class Pieces {
 public:
  Pieces(Backend backend, Conv2dMaker* maker, const Conv2dProblem& problem, KernelRequest& request)
      : samples_(request.inputs[0].shape[0]),
        piece_(std::min(problem.piece, samples_)),
        continues_(problem.continues) {
    Conv2dProblem own = problem;
    own.piece = 0;
    own.continues = false;
    whole_ = piece_of(maker, own, request, piece_);
    if (samples_ % piece_ != 0) last_ = piece_of(maker, own, request, samples_ % piece_);
    for (const TensorDesc& output : request.outputs) {
      const TensorDesc flat{DType::f32, {buffer_elements(output)}, Layout::row_major, nullptr};
      KernelRequest sum{{flat, flat}, {flat}};
      add_.push_back(add_forward(backend, {}, sum));
      part_at_.push_back(bytes_);
      bytes_ += aligned(output.bytes());
    }
    for (std::size_t i = 0; i < sample_bytes_.size(); ++i)
      sample_bytes_[i] = request.inputs[i].bytes() / static_cast<std::size_t>(samples_);
  }

  Kernel kernel() && {
    Kernel kernel;
    kernel.workspace_bytes = bytes_ + std::max(whole_.workspace_bytes, last_.workspace_bytes);
    kernel.takes_members = whole_.takes_members && (last_.bind == nullptr || last_.takes_members);
    for (const Kernel& add : add_) kernel.takes_members = kernel.takes_members && add.takes_members;
    for (int i = 0; continues_ && i < std::ssize(add_); ++i) kernel.in_place.emplace_back(2 + i, i);
    kernel.bind = [pieces = std::move(*this)](const Operands& operands) { return pieces.bind(operands); };
    return kernel;
  }

 private:
  // Makes the kernel of a piece of `count` samples. Then copies to `request` the layouts that
  // `maker` chose.
  static Kernel piece_of(Conv2dMaker* maker, const Conv2dProblem& problem, KernelRequest& request,
                         std::int64_t count) {
    KernelRequest part{{request.inputs[0], request.inputs[1]}, request.outputs};
    for (TensorDesc& input : part.inputs) input.shape[0] = count;
    Kernel kernel = maker(problem, part);
    for (int i = 0; i < 2; ++i) {
      request.inputs[i].layout = part.inputs[i].layout;
      request.inputs[i].opaque = part.inputs[i].opaque;
    }
    request.outputs = part.outputs;
    for (std::size_t i = 2; i < request.inputs.size(); ++i) request.inputs[i] = request.outputs[i - 2];
    return kernel;
  }

  Launch bind(const Operands& operands) const {
    std::vector<Launch> launches;
    for (std::int64_t first = 0; first < samples_; first += piece_) {
      const Kernel& kernel = samples_ - first < piece_ ? last_ : whole_;
      const bool begins = first == 0 && !continues_;
      std::vector<void*> in, out;
      for (std::size_t i = 0; i < sample_bytes_.size(); ++i)
        in.push_back(moved(operands.inputs[i], static_cast<std::size_t>(first) * sample_bytes_[i]));
      for (std::size_t i = 0; i < add_.size(); ++i)
        out.push_back(begins ? operands.outputs[i] : moved(operands.workspace, part_at_[i]));
      launches.push_back(
          kernel.bind({in, out, moved(operands.workspace, bytes_), operands.control, operands.members}));
      for (std::size_t i = 0; !begins && i < add_.size(); ++i) {
        void* const terms[] = {first == 0 ? operands.inputs[2 + i] : operands.outputs[i], out[i]};
        void* const sums[] = {operands.outputs[i]};
        launches.push_back(add_[i].bind({terms, sums, nullptr, operands.control, operands.members}));
      }
    }
    return [launches = std::move(launches)](Stream stream) {
      for (const Launch& launch : launches) launch(stream);
    };
  }

  std::int64_t samples_, piece_;
  bool continues_;
  Kernel whole_, last_;               // for a piece of piece_ samples, and for a smaller last piece
  std::vector<Kernel> add_;           // for each output: adds a piece's gradient to the sum so far
  std::vector<std::size_t> part_at_;  // for each output: offset of a piece's gradient in the workspace
  std::size_t bytes_ = 0;             // where the workspace of a piece's kernel begins
  std::array<std::size_t, 2> sample_bytes_{};
};

}  // namespace

Kernel backward_weights_in_pieces(Backend backend, Conv2dMaker* maker, const Conv2dProblem& problem,
                                  KernelRequest& request) {
  const std::size_t outputs = problem.bias ? 2 : 1;
  require_counts("conv2d_backward_weights", request, problem.continues ? 2 + outputs : 2, outputs);
  return Pieces(backend, maker, problem, request).kernel();
}

}  // namespace convoy::kernels

// Uses oneDNN in cpu.cpp files: describes our tensors to it, keeps its weight layouts as opaque
// layouts, and binds its primitives to addresses once.
#pragma once

#include <oneapi/dnnl/dnnl_version.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <utility>
#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::kernels::onednn {

const dnnl::engine& engine();
const dnnl::stream& stream();

// Returns attributes that take the scratchpad from the kernel's workspace. Pass them to every
// primitive descriptor.
dnnl::primitive_attr user_scratchpad();

// Hides the differences of oneDNN's versions 2 and 3: how descriptors of primitives are made
// (backward ones take the forward one as a hint), and a descriptor's extents.
#if DNNL_VERSION_MAJOR >= 3
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc forward_primitive(const Arguments&... arguments) {
  return {engine(), arguments..., user_scratchpad()};
}
template <typename Primitive, typename Hint, typename... Arguments>
typename Primitive::primitive_desc backward_primitive(const Hint& hint, const Arguments&... arguments) {
  return {engine(), arguments..., hint, user_scratchpad()};
}
inline dnnl::memory::dims dims_of(const dnnl::memory::desc& desc) { return desc.get_dims(); }
#else
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc forward_primitive(const Arguments&... arguments) {
  return {typename Primitive::desc(arguments...), user_scratchpad(), engine()};
}
template <typename Primitive, typename Hint, typename... Arguments>
typename Primitive::primitive_desc backward_primitive(const Hint& hint, const Arguments&... arguments) {
  return {typename Primitive::desc(arguments...), user_scratchpad(), engine(), hint};
}
inline dnnl::memory::dims dims_of(const dnnl::memory::desc& desc) { return desc.dims(); }
#endif

dnnl::memory::data_type type_of(DType type);
dnnl::memory::dims dims_of(const Shape& shape);

// Returns the descriptor of a tensor that has a layout.
dnnl::memory::desc desc_of(const TensorDesc& tensor);
// Describes the same bytes with other extents (grouped weights [G, K / G, ...], linear weights [O,
// C, H, W]).
dnnl::memory::desc desc_of(const TensorDesc& tensor, const dnnl::memory::dims& dims);
// Returns a descriptor that leaves the layout to oneDNN.
dnnl::memory::desc any_desc(const TensorDesc& tensor, const dnnl::memory::dims& dims);
inline dnnl::memory::desc any_desc(const TensorDesc& tensor) {
  return any_desc(tensor, dims_of(tensor.shape));
}
// Returns any_desc() if the layout is open, else desc_of().
dnnl::memory::desc open_desc_of(const TensorDesc& tensor, const dnnl::memory::dims& dims);
inline dnnl::memory::desc open_desc_of(const TensorDesc& tensor) {
  return open_desc_of(tensor, dims_of(tensor.shape));
}
// Gives a tensor whose layout is open the one that oneDNN chose: one of ours if possible, else an
// opaque one.
void require_layout(TensorDesc& tensor, const dnnl::memory::desc& chosen);
// Does so for images. Other kernels read these, so an opaque layout will not do: if oneDNN's choice
// is none of ours (blocks of four channels), they get the layout of `other`.
void choose_image_layout(TensorDesc& tensor, const dnnl::memory::desc& chosen, const TensorDesc& other);

// A buffer that is an operand of the kernel, or in its workspace.
struct Buffer {
  enum class Place : std::uint8_t { input, output, workspace };
  Place place;
  std::size_t at;  // the operand's position, or an offset in bytes
  dnnl::memory::desc desc;
};
inline Buffer input(int position, const dnnl::memory::desc& desc) {
  return {Buffer::Place::input, static_cast<std::size_t>(position), desc};
}
inline Buffer output(int position, const dnnl::memory::desc& desc) {
  return {Buffer::Place::output, static_cast<std::size_t>(position), desc};
}

// The primitives of one kernel, in order.
class Sequence {
 public:
  using Arguments = std::vector<std::pair<int, Buffer>>;  // maps DNNL_ARG_... to a buffer

  Buffer temporary(const dnnl::memory::desc& desc);
  // Returns `target` if it has the wanted layout, else a temporary that is copied to it later.
  Buffer same_or_temporary(const Buffer& target, const dnnl::memory::desc& wanted);
  // Adds a primitive; its scratchpad is added to the arguments.
  void add(const dnnl::primitive_desc_base& primitive, Arguments arguments);
  void reorder(const Buffer& from, const Buffer& to);
  // Returns `buffer` if it has the wanted layout, else a temporary with a copy of it.
  Buffer in_layout(const Buffer& buffer, const dnnl::memory::desc& wanted);
  // Adds a primitive that writes `wanted` as DNNL_ARG `role`, and copies the result into `target`
  // if that has another layout.
  void add_writing(const dnnl::primitive_desc_base& primitive, Arguments arguments, int role,
                   const dnnl::memory::desc& wanted, const Buffer& target);
  Kernel kernel(std::vector<std::pair<int, int>> in_place = {}) const;

 private:
  struct Step {
    dnnl::primitive primitive;
    Arguments arguments;
  };
  std::vector<Step> steps_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace convoy::kernels::onednn

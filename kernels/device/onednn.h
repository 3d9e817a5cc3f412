// Lets cpu.cpp files use oneDNN. Describes our tensors to oneDNN, keeps the layouts that oneDNN
// chooses for weights as opaque layouts, and binds primitives to addresses once.
#pragma once

#include <oneapi/dnnl/dnnl_version.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <utility>
#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::kernels::onednn {

const dnnl::engine& engine();
const dnnl::stream& stream();

// Returns attributes that make a primitive use the kernel's workspace as its scratchpad. Pass them
// to every primitive descriptor.
dnnl::primitive_attr user_scratchpad();

// oneDNN's versions 2 and 3 differ in how primitive descriptors are made, and in how the extents of
// a descriptor are read. The functions below hide the difference.
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

// Returns the descriptor of a tensor whose layout is not open.
dnnl::memory::desc desc_of(const TensorDesc& tensor);
// Describes the tensor with other extents over the same bytes, such as [G, K / G, ...] for grouped
// weights.
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
// If the tensor's layout is open, sets it to the layout that oneDNN chose: to an enumerator of
// Layout if one fits, else to an opaque layout.
void require_layout(TensorDesc& tensor, const dnnl::memory::desc& chosen);
// If the image's layout is open, sets it to the layout that oneDNN chose. If no enumerator of
// Layout fits (for example, for blocks of four channels), uses the layout of `other` instead.
// Images never get an opaque layout, because other kernels could not read it.
void choose_image_layout(TensorDesc& tensor, const dnnl::memory::desc& chosen, const TensorDesc& other);

// A buffer that is an operand of the kernel or lies in its workspace.
struct Buffer {
  enum class Place : std::uint8_t { input, output, workspace };
  Place place;
  std::size_t at;  // the operand's position, or an offset in the workspace in bytes
  dnnl::memory::desc desc;
};
inline Buffer input(int position, const dnnl::memory::desc& desc) {
  return {Buffer::Place::input, static_cast<std::size_t>(position), desc};
}
inline Buffer output(int position, const dnnl::memory::desc& desc) {
  return {Buffer::Place::output, static_cast<std::size_t>(position), desc};
}

// The primitives of one kernel, in the order in which they run.
class Sequence {
 public:
  using Arguments = std::vector<std::pair<int, Buffer>>;  // maps DNNL_ARG_... to a buffer

  Buffer temporary(const dnnl::memory::desc& desc);
  // Returns `target` if it has the wanted layout, else a temporary buffer in this layout. The
  // caller must then copy the buffer to `target`.
  Buffer same_or_temporary(const Buffer& target, const dnnl::memory::desc& wanted);
  // Adds a primitive to the sequence. The function itself adds the scratchpad to the arguments.
  void add(const dnnl::primitive_desc_base& primitive, Arguments arguments);
  void reorder(const Buffer& from, const Buffer& to);
  // Returns `buffer` if it has the wanted layout, else a temporary buffer into which a copy in this
  // layout is made.
  Buffer in_layout(const Buffer& buffer, const dnnl::memory::desc& wanted);
  // Adds a primitive. `role` is the DNNL_ARG_... of its result, which has the layout `wanted`. If
  // `target` has another layout, also adds a copy of the result to `target`.
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

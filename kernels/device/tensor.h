// A tensor as kernels see it: element type, logical shape and the layout of its bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

namespace convoy::kernels {

enum class DType : std::uint8_t { f32, f64, bf16, i32, u8 };
std::size_t bytes_of(DType type);

// Up to four extents, outermost first. Images are [N, C, H, W], matrices [rows, columns], and
// vectors with one element per channel [C].
class Shape {
 public:
  static constexpr int kMaxRank = 4;
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return extents_[axis]; }
  std::int64_t& operator[](int axis) { return extents_[axis]; }
  std::int64_t elements() const;
  std::string to_string() const;  // for example "64x3x32x32"
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

// The order of a tensor's elements in memory, for the logical shape [N, C, H, W]. Tensors of lower
// rank are row_major.
enum class Layout : std::uint8_t {
  any,            // open: the first kernel maker that uses the tensor chooses
  row_major,      // NCHW
  channels_last,  // NHWC
  blocked16,      // [N, ceil(C/16), H, W, 16], padding channels are zero
  blocked8,       // [N, ceil(C/8), H, W, 8], padding channels are zero
  opaque,         // only the backend that chose it can read it, through OpaqueLayout
};

// A layout that only one backend can read, such as oneDNN's blocked weights. Its padding is skipped
// by to_row_major and set to zero by from_row_major.
class OpaqueLayout {
 public:
  virtual ~OpaqueLayout() = default;
  virtual std::size_t bytes() const = 0;
  virtual void to_row_major(const void* from, float* to) const = 0;
  virtual void from_row_major(const float* from, void* to) const = 0;
};

struct TensorDesc {
  DType dtype = DType::f32;
  Shape shape;
  Layout layout = Layout::any;
  std::shared_ptr<const OpaqueLayout> opaque;  // set if and only if layout is opaque

  std::size_t bytes() const;  // the bytes of the buffer, padding included
};

// Returns whether a buffer of the tensor holds float32 in row-major order, without padding.
bool is_row_major_f32(const TensorDesc& desc);
// Convert between a buffer and float32 in row-major order, which checkpoints, tests and the
// reference backend use. Both addresses must be in host memory. from_row_major sets padding to
// zero.
void to_row_major(const TensorDesc& desc, const void* from, float* to);
void from_row_major(const TensorDesc& desc, const float* from, void* to);

}  // namespace convoy::kernels

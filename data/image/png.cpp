// libpng reports errors through a callback, which jumps back with longjmp. No object with a
// destructor may be created between setjmp and the jump.
#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "data/image/codec.h"

namespace convoy::data {
namespace {

class Png final : public Codec {
 public:
  explicit Png(int channels) : channels_(channels) {}
  ~Png() override { close(); }

  ImageShape open(std::span<const std::uint8_t> content) override {
    content_ = content;
    read_header();
    return {png_get_image_height(png_, info_), png_get_image_width(png_, info_), channels_};
  }

  void read(PixelRectangle region, int /*reduction*/, std::uint8_t* to) override {
    if (png_ == nullptr) read_header();  // an earlier read() has consumed the header
    guarded([this] { set_transformations(); });
    const std::size_t row_bytes = png_get_rowbytes(png_, info_);
    const std::size_t rows = passes_ > 1 ? png_get_image_height(png_, info_) : 1;
    rows_.resize(std::max(rows_.size(), rows * row_bytes));
    guarded([&] { read_rows(region, row_bytes, to); });
    close();
  }

 private:
  static void give_up(png_structp png, png_const_charp message) {
    auto* self = static_cast<Png*>(png_get_error_ptr(png));
    std::snprintf(self->message_.data(), self->message_.size(), "%s", message);
    png_longjmp(png, 1);
  }
  // Ignores warnings. The pixels can be read in spite of them; otherwise libpng also reports an
  // error.
  static void on_warning(png_structp, png_const_charp) {}
  static void take(png_structp png, png_bytep to, std::size_t count) {
    auto* self = static_cast<Png*>(png_get_io_ptr(png));
    if (count > self->left_.size()) png_error(png, "the file ends too early");
    std::memcpy(to, self->left_.data(), count);
    self->left_ = self->left_.subspan(count);
  }

  template <typename Call>
  void guarded(const Call& call) {
    if (setjmp(png_jmpbuf(png_)) != 0) {
      close();
      throw std::runtime_error(fmt::format("bad PNG: {}", message_.data()));
    }
    call();
  }

  void close() { png_destroy_read_struct(&png_, &info_, nullptr); }

  void read_header() {
    close();
    left_ = content_;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, give_up, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) throw std::runtime_error("bad PNG: libpng cannot start");
    guarded([this] {
      // Ignore colour profiles, gamma, texts and transparency: the pixels are returned as stored.
      static constexpr std::array<png_byte, 5> kTransparency{'t', 'R', 'N', 'S', 0};
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, kTransparency.data(), 1);
      png_set_read_fn(png_, this, take);
      png_read_info(png_, info_);
    });
  }

  void set_transformations() {
    const int color = png_get_color_type(png_, info_), bits = png_get_bit_depth(png_, info_);
    if (bits == 16) png_set_strip_16(png_);
    if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (color == PNG_COLOR_TYPE_GRAY && bits < 8) png_set_expand_gray_1_2_4_to_8(png_);
    if ((color & PNG_COLOR_MASK_ALPHA) != 0) png_set_strip_alpha(png_);
    if (channels_ == 3) png_set_gray_to_rgb(png_);
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  void read_rows(const PixelRectangle& region, std::size_t row_bytes, std::uint8_t* to) {
    const std::int32_t end = region.y + region.height;
    const auto height = static_cast<std::int32_t>(png_get_image_height(png_, info_));
    // Read the whole image in every pass, because an interlaced image is complete only after the
    // last one.
    for (int pass = 0; passes_ > 1 && pass < passes_; ++pass)
      for (std::int32_t y = 0; y < height; ++y)
        png_read_row(png_, rows_.data() + static_cast<std::size_t>(y) * row_bytes, nullptr);
    for (std::int32_t y = passes_ > 1 ? region.y : 0; y < end; ++y) {
      std::uint8_t* row = rows_.data() + (passes_ > 1 ? static_cast<std::size_t>(y) * row_bytes : 0);
      if (passes_ == 1) png_read_row(png_, row, nullptr);
      if (y < region.y) continue;
      convert(row, region, to);
      to += region.width * channels_;
    }
  }

  void convert(const std::uint8_t* row, const PixelRectangle& region, std::uint8_t* to) const {
    const int components = png_get_channels(png_, info_);
    const std::uint8_t* from = row + region.x * components;
    if (components == channels_) {
      std::memcpy(to, from, static_cast<std::size_t>(region.width * channels_));
      return;
    }
    for (std::int32_t x = 0; x < region.width; ++x, from += 3) to[x] = grey_of(from[0], from[1], from[2]);
  }

  int channels_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
  std::array<char, 200> message_{};
  std::span<const std::uint8_t> content_, left_;
  std::vector<std::uint8_t> rows_;
};

}  // namespace

std::unique_ptr<Codec> make_png_codec(int channels) { return std::make_unique<Png>(channels); }

}  // namespace convoy::data

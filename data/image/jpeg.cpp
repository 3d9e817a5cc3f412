// libjpeg reports errors through a callback. No exception may pass through libjpeg's C code, so the
// callback jumps back with longjmp. No object with a destructor may be created between setjmp and
// the jump.
#include <csetjmp>
#include <cstdio>
// jpeglib.h needs FILE and size_t declared before it.
#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "data/image/codec.h"
#include "data/image/jpeg_huffman.h"
#include "data/image/jpeg_internals.h"

namespace convoy::data {
namespace {

// The most rows that libjpeg returns in one call. It upsamples rows by at most 4.
constexpr int kRows = 4;
// The limit bounds the time for a small file with very many scans. Real files have about ten.
constexpr int kMostScans = 200;
// Extra columns that are decoded on either side of a region. Upsampling of colour reads one more
// sample (two pixels). Smoothing of an incomplete progressive image reads two more blocks.
constexpr JDIMENSION kMarginPixels = 2, kMarginBlocks = 2;

// block_of() returns to how many pixels per side a block of 8x8 coefficients of a component is
// decoded. smallest_block() returns the smallest such number of all components. The names of
// libjpeg's fields depend on the libjpeg version that libjpeg-turbo imitates.
#if JPEG_LIB_VERSION >= 70
int block_of(const jpeg_component_info& component) { return component.DCT_h_scaled_size; }
int smallest_block(const jpeg_decompress_struct& jpeg) { return jpeg.min_DCT_h_scaled_size; }
#else
int block_of(const jpeg_component_info& component) { return component.DCT_scaled_size; }
int smallest_block(const jpeg_decompress_struct& jpeg) { return jpeg.min_DCT_scaled_size; }
#endif

class Jpeg final : public Codec {
 public:
  explicit Jpeg(int channels) : channels_(channels) {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = give_up;
    errors_.emit_message = on_message;
    jpeg_.client_data = this;
    progress_.progress_monitor = on_progress;
  }
  ~Jpeg() override { jpeg_destroy_decompress(&jpeg_); }

  ImageShape open(std::span<const std::uint8_t> content) override {
    content_ = content;
    read_header();
    return {jpeg_.image_height, jpeg_.image_width, channels_};
  }

  void read(PixelRectangle region, int reduction, std::uint8_t* to) override {
    if (!try_read(region, reduction, to, true)) try_read(region, reduction, to, false);
  }

 private:
  // Reads the region. If `fast` is set, tries JpegHuffman for the Huffman codes, and returns false
  // if JpegHuffman cannot decode them. Then libjpeg-turbo's own decoder must be used.
  bool try_read(PixelRectangle region, int reduction, std::uint8_t* to, bool fast) {
    if (!header_read_) read_header();  // an earlier read() used up the header
    header_read_ = false;
    if (!guarded([&] { start(region, reduction, fast); })) return false;
    const auto row_bytes =
        static_cast<std::size_t>(jpeg_.output_width) * static_cast<std::size_t>(jpeg_.output_components);
    rows_.resize(std::max(rows_.size(), row_bytes * kRows));
    return guarded([&] { read_rows(region, row_bytes, to); });
  }

  [[noreturn]] static void give_up(j_common_ptr jpeg) {
    auto* self = static_cast<Jpeg*>(jpeg->client_data);
    jpeg->err->format_message(jpeg, self->message_.data());
    std::longjmp(self->escape_, 1);
  }
  // libjpeg calls this for each of its messages. Levels below 0 are warnings. Warnings count as
  // errors, because most of them mean that data are missing or damaged. Only the warnings in the
  // first cases below are ignored, because they do not affect the pixels.
  static void on_message(j_common_ptr jpeg, int level) {
    switch (jpeg->err->msg_code) {
      case JWRN_EXTRANEOUS_DATA:
      case JWRN_JFIF_MAJOR:
      case JWRN_ADOBE_XFORM:
      case JWRN_NOT_SEQUENTIAL:
        return;
      default:
        if (level < 0) give_up(jpeg);
    }
  }
  static void on_progress(j_common_ptr jpeg) {
    auto* self = static_cast<Jpeg*>(jpeg->client_data);
    if (self->jpeg_.input_scan_number <= kMostScans) return;
    std::snprintf(self->message_.data(), self->message_.size(), "more than %d scans", kMostScans);
    std::longjmp(self->escape_, 1);
  }

  static boolean decode_mcu(j_decompress_ptr jpeg, JBLOCKROW* blocks) {
    auto* self = static_cast<Jpeg*>(jpeg->client_data);
    if (self->huffman_.decode(blocks)) return TRUE;
    self->unusual_ = true;
    std::longjmp(self->escape_, 1);
  }

  // Runs `call` and turns libjpeg errors into exceptions. Returns false if JpegHuffman gave up.
  template <typename Call>
  bool guarded(const Call& call) {
    unusual_ = false;
    if (setjmp(escape_) != 0) {
      jpeg_abort_decompress(&jpeg_);
      if (unusual_) return false;
      throw std::runtime_error(fmt::format("bad JPEG: {}", message_.data()));
    }
    call();
    return true;
  }

  // Creates a new libjpeg decoder for each image. A reused one would decode a file without Huffman
  // or quantisation tables with the tables of the previous image.
  void read_header() {
    header_read_ = false;
    jpeg_destroy_decompress(&jpeg_);
    guarded([this] {
      jpeg_create_decompress(&jpeg_);
      jpeg_.progress = &progress_;
      jpeg_mem_src(&jpeg_, content_.data(), content_.size());
      jpeg_read_header(&jpeg_, TRUE);
    });
    header_read_ = true;
  }

  // Starts to decode and skips the rows above the region. Sets left_ to the position of the
  // region's first column in the rows that libjpeg returns.
  void start(const PixelRectangle& region, int reduction, bool fast) {
    const bool cmyk = jpeg_.jpeg_color_space == JCS_CMYK || jpeg_.jpeg_color_space == JCS_YCCK;
    const bool grey = channels_ == 1 && jpeg_.jpeg_color_space == JCS_GRAYSCALE;
    jpeg_.out_color_space = cmyk ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_.scale_num = static_cast<unsigned>(8 / reduction);
    jpeg_.scale_denom = 8;
    const bool multiple_scans = jpeg_has_multiple_scans(&jpeg_) != 0;
    jpeg_start_decompress(&jpeg_);
    fast = fast && !multiple_scans && start_huffman();
    const JDIMENSION margin =
        !multiple_scans ? kMarginPixels
                        : kMarginBlocks * static_cast<JDIMENSION>(8 / reduction * jpeg_.max_h_samp_factor);
    const auto x = static_cast<JDIMENSION>(region.x), right = x + static_cast<JDIMENSION>(region.width);
    // With fewer than `least` samples per row, libjpeg would use another method of upsampling and
    // return other pixels.
    const auto least = static_cast<JDIMENSION>(3 * jpeg_.max_h_samp_factor);
    const JDIMENSION end = std::min(jpeg_.output_width, std::max(right + margin, least));
    JDIMENSION first = std::min(x > margin ? x - margin : 0, end > least ? end - least : 0);
    JDIMENSION width = end - first;
    if (!can_crop()) first = 0, width = jpeg_.output_width;
    if (width < jpeg_.output_width) jpeg_crop_scanline(&jpeg_, &first, &width);
    left_ = x - first;
    if (fast) huffman_.set_columns(needed_columns(jpeg_).first, needed_columns(jpeg_).second);
    if (region.y > 0) jpeg_skip_scanlines(&jpeg_, static_cast<JDIMENSION>(region.y));
  }

  bool start_huffman() {
    if (!kCanReplaceHuffman ||
        !huffman_.start(jpeg_, {jpeg_.src->next_input_byte, jpeg_.src->bytes_in_buffer}))
      return false;
    replace_huffman(jpeg_, decode_mcu);
    jpeg_.src->next_input_byte = huffman_.rest().data();
    jpeg_.src->bytes_in_buffer = huffman_.rest().size();
    return true;
  }

  // Returns whether jpeg_crop_scanline() works for this image. libjpeg may decode a component with
  // larger blocks than the others, so that it need not be upsampled. If such a component must be
  // upsampled nevertheless (4x2 sampling), jpeg_crop_scanline() fails.
  bool can_crop() const {
    const int smallest = smallest_block(jpeg_);
    for (int i = 0; i < jpeg_.num_components; ++i) {
      const jpeg_component_info& component = jpeg_.comp_info[i];
      const int block = block_of(component);
      const bool whole = component.h_samp_factor * block == jpeg_.max_h_samp_factor * smallest &&
                         component.v_samp_factor * block == jpeg_.max_v_samp_factor * smallest;
      if (block != smallest && !whole) return false;
    }
    return true;
  }

  void read_rows(const PixelRectangle& region, std::size_t row_bytes, std::uint8_t* to) {
    const std::size_t wanted = static_cast<std::size_t>(region.width) * static_cast<std::size_t>(channels_);
    const bool direct = row_bytes == wanted && jpeg_.output_components == channels_;
    const auto end = static_cast<JDIMENSION>(region.y + region.height);
    std::array<JSAMPROW, kRows> rows{};
    while (jpeg_.output_scanline < end) {
      for (std::size_t i = 0; i < kRows; ++i)
        rows[i] = direct ? to + i * wanted : rows_.data() + i * row_bytes;
      const JDIMENSION got =
          jpeg_read_scanlines(&jpeg_, rows.data(), std::min<JDIMENSION>(kRows, end - jpeg_.output_scanline));
      for (std::size_t i = 0; i < got; ++i, to += wanted)
        if (!direct) convert(rows[i], static_cast<std::size_t>(region.width), to);
    }
    // After the last row, also read the end of the file. This detects truncated files.
    if (jpeg_.output_scanline == jpeg_.output_height) {
      jpeg_finish_decompress(&jpeg_);
    } else {
      jpeg_abort_decompress(&jpeg_);
    }
  }

  void convert(const std::uint8_t* row, std::size_t width, std::uint8_t* to) const {
    const std::uint8_t* from = row + left_ * static_cast<std::size_t>(jpeg_.output_components);
    if (jpeg_.output_components == channels_) {
      std::memcpy(to, from, width * static_cast<std::size_t>(channels_));
    } else if (jpeg_.output_components == 3) {
      for (std::size_t x = 0; x < width; ++x, from += 3) to[x] = grey_of(from[0], from[1], from[2]);
    } else {
      cmyk_to_pixels(from, width, to);
    }
  }

  // Converts CMYK to RGB or grey as Pillow does. libjpeg has no such conversion.
  void cmyk_to_pixels(const std::uint8_t* from, std::size_t width, std::uint8_t* to) const {
    for (std::size_t x = 0; x < width; ++x, from += 4, to += channels_) {
      const int light = from[3];
      const auto colour = [light](int stored) {
        const int product = (255 - stored) * light + 128;
        return static_cast<std::uint8_t>(std::max(light - (((product >> 8) + product) >> 8), 0));
      };
      const std::uint8_t red = colour(from[0]), green = colour(from[1]), blue = colour(from[2]);
      if (channels_ == 1) {
        to[0] = grey_of(red, green, blue);
      } else {
        to[0] = red, to[1] = green, to[2] = blue;
      }
    }
  }

  int channels_;
  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf escape_{};
  std::array<char, JMSG_LENGTH_MAX> message_{};
  std::span<const std::uint8_t> content_;
  bool header_read_ = false;
  std::size_t left_ = 0;
  std::vector<std::uint8_t> rows_;
  JpegHuffman huffman_;
  bool unusual_ = false;
};

}  // namespace

std::unique_ptr<Codec> make_jpeg_codec(int channels) { return std::make_unique<Jpeg>(channels); }

}  // namespace convoy::data

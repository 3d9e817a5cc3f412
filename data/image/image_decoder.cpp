#include "data/image/image_decoder.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "data/image/codec.h"
#include "data/image/decode.h"

namespace convoy::data {
namespace {

bool starts_with(std::span<const std::uint8_t> content, std::span<const std::uint8_t> signature) {
  return content.size() >= signature.size() &&
         std::memcmp(content.data(), signature.data(), signature.size()) == 0;
}

constexpr std::uint8_t kJpegSignature[] = {0xFF, 0xD8}, kPngSignature[] = {0x89, 'P', 'N', 'G'};

}  // namespace

ImageDecoder::ImageDecoder(ImageFormat format, ImageShape shape) : format_(format), shape_(shape) {
  if (format == ImageFormat::pixels) return;
  if (shape.channels != 1 && shape.channels != 3) {
    throw std::invalid_argument(
        fmt::format("ImageDecoder: {} channels, expected 1 or 3 of encoded images", shape.channels));
  }
  jpeg_ = make_jpeg_codec(static_cast<int>(shape.channels));
  png_ = make_png_codec(static_cast<int>(shape.channels));
}

ImageDecoder::~ImageDecoder() = default;
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;

ImageShape ImageDecoder::open(std::span<const std::uint8_t> stored) {
  codec_ = nullptr;
  if (format_ == ImageFormat::pixels) {
    if (static_cast<std::int64_t>(stored.size()) != shape_.bytes()) {
      throw std::invalid_argument(fmt::format("ImageDecoder: {} bytes, expected {} of an image of {}",
                                              stored.size(), shape_.bytes(), shape_.to_string()));
    }
    pixels_ = stored;
    return shape_;
  }
  Codec* codec = starts_with(stored, kJpegSignature)  ? jpeg_.get()
                 : starts_with(stored, kPngSignature) ? png_.get()
                                                      : nullptr;
  if (codec == nullptr) {
    throw std::runtime_error(stored.empty() ? "an empty file, expected a JPEG or PNG image"
                                            : "neither a JPEG nor a PNG image");
  }
  const ImageShape shape = codec->open(stored);
  if (shape.height * shape.width > kLargestImagePixels) {
    throw std::runtime_error(fmt::format("an image of {}x{} pixels is too large, expected at most {} pixels",
                                         shape.width, shape.height, kLargestImagePixels));
  }
  codec_ = codec;
  shape_ = shape;
  return shape_;
}

int ImageDecoder::reduction(double scale) const {
  if (codec_ == nullptr || codec_ != jpeg_.get()) return 1;
  return scale >= 8 ? 8 : scale >= 4 ? 4 : scale >= 2 ? 2 : 1;
}

void ImageDecoder::read(PixelRectangle region, int reduction, std::uint8_t* to) {
  const std::int64_t height = (shape_.height + reduction - 1) / reduction,
                     width = (shape_.width + reduction - 1) / reduction;
  const bool known =
      reduction == 1 || ((reduction == 2 || reduction == 4 || reduction == 8) && this->reduction(8) == 8);
  if (!known || region.x < 0 || region.y < 0 || region.width < 1 || region.height < 1 ||
      region.x > width - region.width || region.y > height - region.height ||
      (codec_ == nullptr && pixels_.empty())) {
    throw std::invalid_argument(fmt::format("ImageDecoder::read: {}x{} at {}, {} of {} reduced by {}",
                                            region.width, region.height, region.x, region.y,
                                            shape_.to_string(), reduction));
  }
  if (codec_ != nullptr) return codec_->read(region, reduction, to);
  const std::int64_t row = region.width * shape_.channels;
  for (std::int64_t y = region.y; y < region.y + region.height; ++y, to += row) {
    std::memcpy(to, pixels_.data() + (y * shape_.width + region.x) * shape_.channels,
                static_cast<std::size_t>(row));
  }
}

Image decode_image(std::span<const std::uint8_t> content, int channels) {
  ImageDecoder decoder(ImageFormat::encoded, {0, 0, channels});
  Image image;
  image.shape = decoder.open(content);
  image.pixels.resize(static_cast<std::size_t>(image.shape.bytes()));
  decoder.read(
      {0, 0, static_cast<std::int32_t>(image.shape.width), static_cast<std::int32_t>(image.shape.height)}, 1,
      image.pixels.data());
  return image;
}

}  // namespace convoy::data
